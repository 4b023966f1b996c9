"""Pictures and queries of an older commit put back as they were, in one commit, under the names that they had.

A picture that was a file of its own is copied on the server, one that its block hides is shown again, and other members
of blocks and archives are read and put into new blocks. What is there and equal stays; what is there and differs is
replaced only on request: older commits keep it.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.client.commit_writer import CommitWriter
from pipelines.client.file_sets import FileSets
from pipelines.client.repository import CopyFile, DeleteFile, FileEdit, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library import archive_members, library_commit, queries
from pipelines.library.block_store import BlockDownloads
from pipelines.library.library_commit import LibraryCommit
from pipelines.library.picture_hashes import digest
from pipelines.library.picture_sources import PictureSource
from pipelines.library.selection import select
from pipelines.library.snapshots import REPO, LibrarySnapshot
from stages.datum.text_format import counted, first_of
from stages.files import blocks
from stages.record.pfs_names import unescape

_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """The outcome: the names that were missing and are back, those that were replaced, those that were there and equal,
    and the commit, "" if nothing was to be done."""

    missing: list[str]
    replaced: list[str]
    unchanged: list[str]
    commit: str


def pictures(
    connection: Connection,
    words: Sequence[str],
    commit: str,
    when: str,
    replace: bool = False,
    names: Callable[[], Iterable[str]] | None = None,
    report: Callable[[int], None] = lambda _: None,
) -> RestoreResult:
    """Puts back the pictures that words meant at a commit of `images`, see `selection.select`.

    when: the commit in words. replace: whether to replace others of the same names. names: gives those of all files and
    pictures then; by default all blocks are read for them.

    Raises LookalikeError, and restores nothing, if a word meant none, or for pictures that differ without `replace`.
    """
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch, FileSets(connection) as filesets:

        def compared() -> _Restoration:
            restoring = _Restoration(connection, commit, Path(tempfile.mkdtemp(dir=scratch)))
            restoring.compare(restoring.select(words, when, names), report)
            return restoring

        restoring = connection.retry(compared)
        _refuse(restoring.different, replace)
        missing, different = list(restoring.missing), list(restoring.different)
        if not missing and not different:
            return RestoreResult([], [], restoring.unchanged, "")
        content = restoring.content(filesets, [*missing, *different])
        return RestoreResult(missing, different, restoring.unchanged, library_commit.write(connection, content))


def entries(
    connection: Connection, words: Sequence[str], commit: str, when: str, replace: bool = False
) -> RestoreResult:
    """Puts back the query entries that words meant at a commit of `queries`; otherwise as `pictures`."""
    then = Repository(connection, queries.REPO, commit)
    before = connection.retry(then.entries)
    named = [connection.retry(queries.true_name, connection, p.rstrip("/"), commit) for p in before]
    known = dict(zip(named, before, strict=True))
    wanted = select(words, known.__contains__, lambda: known, f"the queries at {when}", "restored")
    now = connection.retry(Repository(connection, queries.REPO).entries)
    missing: list[str] = []
    different: list[str] = []
    unchanged: list[str] = []
    for name in wanted:
        path = known[name].rstrip("/")
        held = {each: content for each, content in now.items() if each.rstrip("/") == path}
        kind = missing if not held else unchanged if held == {known[name]: before[known[name]]} else different
        kind.append(name)
    _refuse(different, replace)
    edits: list[FileEdit] = []
    for name in (*missing, *different):
        path = f"/{known[name]}"
        edits += [DeleteFile(path.rstrip("/")), DeleteFile(f"{path.rstrip('/')}/")]
        files = connection.retry(then.files_in, path) if path.endswith("/") else [path]
        edits += [CopyFile(each, queries.REPO, commit, each) for each in files]
    made = Repository(connection, queries.REPO).write(edits) if edits else ""
    return RestoreResult(missing, different, unchanged, made)


def _refuse(different: Iterable[str], replace: bool) -> None:
    found = list(different)
    if found and not replace:
        named = first_of(found, _MOST_NAMED)
        number = counted(len(found), "of them is", "of them are")
        raise LookalikeError(
            f"{number} there with other content: {named}. Nothing was restored: --replace puts the older content in "
            "its place"
        )


class _Restoration:
    """Pictures of one commit beside the library as it is now."""

    def __init__(self, connection: Connection, commit: str, scratch: Path) -> None:
        self._connection = connection
        self._commit = commit
        self._scratch = scratch
        for name in ("then", "now", "members/then", "members/now"):
            (scratch / name).mkdir(parents=True)
        self._then = LibrarySnapshot(connection, commit, BlockDownloads(scratch / "then"))
        self._now = LibrarySnapshot(
            connection, CommitWriter(connection, REPO).newest(), BlockDownloads(scratch / "now")
        )
        self.missing: dict[str, str | PictureSource] = {}
        """Where pictures come from that are not there now: the path of a file then, or bytes on this machine."""
        self.different: dict[str, str | PictureSource] = {}
        """The same for pictures that are there with other content."""
        self.unchanged: list[str] = []

    def select(self, words: Sequence[str], when: str, names: Callable[[], Iterable[str]] | None) -> list[str]:
        """The names that words meant."""
        listed = names or self._then.names
        known: set[str] = set()

        def all_names() -> set[str]:
            known.update(known or listed())
            return known

        def holds(name: str) -> bool:
            if self._then.holds(name):
                return True
            above = archive_members.above(name, self._then)
            return above is not None and (
                name in all_names() if names else archive_members.holds(self._fetched(above), above, name)
            )

        def whole() -> Iterator[str]:
            """Every name; an archive's own instead of those of its members."""
            archives: dict[str, str | None] = {}
            for name in all_names():
                folder = name.rpartition("/")[0]
                if folder not in archives:
                    archives[folder] = archive_members.above(name, self._then)
                yield archives[folder] or name

        return select(words, holds, lambda: set(whole()), f"the library at {when}", "restored")

    def compare(self, names: Iterable[str], report: Callable[[int], None]) -> None:
        """Sorts the pictures by the way they differ from those that are there now."""
        for name in names:
            origin = self._origin(name, self._then, "then")
            there = self._origin(name, self._now, "now")
            if origin is None:
                raise LookalikeError(
                    f"{name} cannot be read from its archive, {archive_members.above(name, self._then)}"
                )
            if there is None:
                self._make_room(origin)
                self.missing[name] = origin
            elif self._equal(origin, there):
                self.unchanged.append(name)
            else:
                self._require_own(name)
                self.different[name] = origin
            report(1)

    def content(self, filesets: FileSets, names: Sequence[str]) -> Callable[[Mapping[str, str]], dict[str, str]]:
        """Gives the file sets that put these pictures back on top of commits."""
        origins = self.missing | self.different
        repo = Repository(self._connection, REPO)
        sources = [each for name in names if isinstance(each := origins[name], PictureSource)]
        single = {name: each for name in names if isinstance(each := origins[name], str)}
        copies = [CopyFile(path, REPO, self._commit, path) for path in single.values()]
        changing = LibraryCommit(
            self._connection, filesets, BlockDownloads(self._scratch), sources, lambda _: single, most_single=0
        )
        copied = [filesets.make(repo.requests(copies))] if copies else []

        def content(parents: Mapping[str, str]) -> dict[str, str]:
            made = changing.content(parents)
            return {**made, REPO: filesets.compose([made[REPO], *copied])}

        return content

    def _origin(self, name: str, library: LibrarySnapshot, which: str) -> str | PictureSource | None:
        """The file that a picture is, or its bytes fetched from the block or archive that holds it; None if there is
        neither."""
        home = library.home(name)
        if home is not None:
            if (record := library.records(home).get(name)) is not None:
                return PictureSource(name, self._scratch, record.size, record=record)
            span = library.pictures(home)[name]
            return PictureSource(name, span.path, span.size or 0, span.offset)
        files = library.files(name)
        if files:
            return files[0]
        above = archive_members.above(name, library)
        if above is None:
            return None
        return archive_members.fetch(self._fetched(above, which), above, name, self._scratch / "members" / which)

    def _fetched(self, above: str, which: str = "then") -> Path:
        """An archive on this machine."""
        library = self._then if which == "then" else self._now
        return archive_members.whole(library, above, self._scratch / "members" / which / "whole")

    def _require_own(self, name: str) -> None:
        """Raises LookalikeError for a picture that an archive holds now."""
        above = None if self._now.holds(name) else archive_members.above(name, self._now)
        if above is not None:
            raise LookalikeError(
                f"{name} is in {above}, which holds another picture of that name now: restore {above} itself: nothing "
                "was restored"
            )

    def _make_room(self, origin: str | PictureSource) -> None:
        """Raises LookalikeError if a file cannot be put where it was."""
        if isinstance(origin, PictureSource):
            return
        top, _, below = origin[1:].partition("/")
        taken = top if below else f"{top}/"
        if taken in self._now.entries:
            raise LookalikeError(
                f"{REPO} has a {'file' if below else 'directory'} called {unescape(top)} now: remove it with "
                f"`lookalike remove {unescape(taken)}`: nothing was restored"
            )

    def _equal(self, then: str | PictureSource, now: str | PictureSource) -> bool:
        if isinstance(then, str) and isinstance(now, str):
            return self._then.hash_of(then) == self._now.hash_of(now)
        return self._digest(then, self._then) == self._digest(now, self._now)

    def _digest(self, origin: str | PictureSource, library: LibrarySnapshot) -> str:
        if isinstance(origin, str):
            return digest(library.content(origin))
        return origin.record.sha256 if origin.record is not None else digest(blocks.content(origin.span))
