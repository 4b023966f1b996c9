"""Pictures put into `images` and removed from it, as top-level entries, in one commit; what is said of them in other
repos, such as their labels, goes into the same commit set.

A picture is a top-level file of its own or is in a block; never both, whoever writes at the same time.
"""

import contextlib
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from pipelines.client.commit_writer import CommitWriter
from pipelines.client.file_sets import FileSets
from pipelines.client.repository import DeleteFile, FileEdit, PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library import library_commit
from pipelines.library.block_store import BlockDownloads
from pipelines.library.folder_sync import FolderDifference
from pipelines.library.library_commit import LibraryCommit, OtherEdits, PictureChoice, UploadProgress
from pipelines.library.picture_hashes import digest
from pipelines.library.picture_sources import PictureSource
from pipelines.library.selection import NothingFoundError, select
from pipelines.library.snapshots import REPO, LibrarySnapshot, open_library
from stages.files import blocks
from stages.record import masks, url_records
from stages.record.pfs_names import unescape

ContentReader = Callable[[], Mapping[str, str]]
"""Gives what is equal for exact copies by the SHA-256 of their files, where their bytes can differ. It reads the whole
index, so it is asked only in a library of which pictures stay at URLs."""


@dataclass(frozen=True, slots=True)
class IngestResult:
    """The outcome of a write: the true names of the pictures put or removed, its commit, "" if there was nothing to do,
    the reasons for which files could not be read, by path on disk, and, of the pictures to put that the library had
    already, whether they were equal. hidden: the number of pictures that went and whose bytes blocks hold on to.
    in_bucket: that of those among them that a bucket still has."""

    names: list[str]
    commit: str
    unreadable: dict[str, str] = field(default_factory=dict)
    held: Mapping[str, bool] = field(default_factory=dict)
    hidden: int = 0
    in_bucket: int = 0

    @property
    def files(self) -> int:
        """The number of pictures put or removed."""
        return len(self.names)


def add(
    connection: Connection,
    sources: Sequence[PictureSource],
    report: UploadProgress = lambda _: None,
    most_single: int | None = None,
    agree: Callable[[Mapping[str, bool]], UploadProgress] | None = None,
    beside: OtherEdits = MappingProxyType({}),
) -> IngestResult:
    """Puts files under their true names, replacing those of the same name; files that cannot be read are left out.

    agree: is called before anything is put with the names that the library has already, and whether their pictures are
    equal, and returns what `report` is. It raises an exception to put nothing. With it, equal pictures are left alone.

    Up to `most_single` (see Changing) become one top-level file each, except those that are in a block already. More go
    into blocks, except archives and other files of many pictures. beside: goes into the same commit set. Raises
    LookalikeError if there are none or none can be read.
    """
    require_files(sources)
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        downloads, held = BlockDownloads(Path(scratch)), dict[str, bool]()
        if agree is not None:
            held = connection.retry(_held, connection, downloads, sources)
            report = agree(held)
            sources = [each for each in sources if not held.get(each.name)]
            if not sources:
                return IngestResult([], "", held=held)
        with FileSets(connection) as filesets:
            changing = LibraryCommit(connection, filesets, downloads, sources, most_single=most_single, report=report)
            commit = changing.make(beside=_stated(beside))
            return IngestResult(changing.names, commit, changing.unreadable, held, changing.hidden)


def _held(connection: Connection, downloads: BlockDownloads, sources: Sequence[PictureSource]) -> dict[str, bool]:
    """The names of pictures to put that the library has already, and whether they are equal. Those that cannot be read
    are left out."""
    library = LibrarySnapshot(connection, CommitWriter(connection, REPO).newest(), downloads)
    by_name = {each.name: each for each in sources}
    found: dict[str, bool] = {}
    for block, names in library.by_block(by_name).items():
        hashes = library.hashes(block) if block else {}
        for name in names:
            files = [] if block else library.files(name)
            if block or files:
                there = hashes[name] if block else digest(library.content(files[0]))
                with contextlib.suppress(OSError):
                    source = by_name[name]
                    sha256 = source.record.sha256 if source.record else digest(blocks.content(source.span))
                    found[name] = there == sha256
    return found


def require_files(sources: Sequence[PictureSource]) -> None:
    """Raises LookalikeError if there are none."""
    if not sources:
        raise LookalikeError("no pictures found: nothing was put")


def mirror(
    connection: Connection,
    different: FolderDifference,
    report: UploadProgress = lambda _: None,
    most_single: int | None = None,
) -> IngestResult:
    """Puts and removes, in one commit, what makes the library equal to a folder; files are laid out as by `add`.

    Pictures that others have removed meanwhile need no removal, and those that others put stay. `names` are those put.
    """
    sources = different.sources

    def present(library: LibrarySnapshot) -> list[str]:
        return [name for name in different.removed if library.holds(name)]

    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch, FileSets(connection) as filesets:
        downloads = BlockDownloads(Path(scratch))
        changing = LibraryCommit(
            connection, filesets, downloads, sources, present, most_single, report, different.copies
        )
        commit = changing.make()
        return IngestResult(changing.names, commit, changing.unreadable, hidden=changing.hidden)


def remove(connection: Connection, words: Sequence[str]) -> IngestResult:
    """Removes the pictures that these words mean, see `selection.select`, which may be names, folders and globs. Raises
    LookalikeError, and removes none, if one means nothing."""
    return _remove(connection, lambda library: select(words, library.holds, library.names, "the library"))


def present(
    connection: Connection, names: Collection[str], contents: ContentReader
) -> tuple[list[str], dict[str, str]]:
    """Of these true names those that can be removed, and for the others the reasons: they are not in the library,
    inside of a file of many, or the last of exact copies whose bytes the library holds."""
    with open_library(connection) as library:
        held = {name: library.holds(name) for name in names}
        absent = {name: _absence(library, name) for name, there in held.items() if not there}
        absent |= dict.fromkeys(_last_stored(library, names, contents), _LAST_STORED)
        return [name for name in held if name not in absent], absent


def forget(
    connection: Connection, names: Collection[str], beside: OtherEdits = MappingProxyType({})
) -> IngestResult | None:
    """Removes the pictures with these true names, ignoring missing ones; None, and then nothing is done, if all are
    missing. beside: as for `add`."""

    def present(library: LibrarySnapshot) -> list[str]:
        found = [name for name in names if library.holds(name)]
        if not found:
            raise NothingFoundError("none of the pictures is in the library")
        return found

    try:
        return _remove(connection, present, beside=beside)
    except NothingFoundError:
        return None


def remove_on(
    connection: Connection, names: Collection[str], head: str, description: str, contents: ContentReader
) -> IngestResult:
    """Removes the pictures with these true names, all of them or none, by one commit on top of `head`. Raises
    MovedHeadError if another commit is the newest, LookalikeError if a name cannot be removed, see `present`."""

    def held(library: LibrarySnapshot) -> Collection[str]:
        for name in names:
            if not library.holds(name):
                raise LookalikeError(f"{name} is {_absence(library, name)}")
        for name in _last_stored(library, names, contents):
            raise LookalikeError(f"{name} is {_LAST_STORED}")
        return names

    return _remove(connection, held, head, description)


def remove_all(connection: Connection) -> IngestResult:
    """Removes everything from `images`, and hides the pictures that listed buckets have now: the masks of all blocks of
    `fetch` stay, and name every picture. `names` are not given."""
    in_bucket = 0

    def content(parents: Mapping[str, str]) -> dict[str, str]:
        nonlocal in_bucket
        edits: dict[str, list[FileEdit]] = {
            name: [DeleteFile(each.path) for each in Repository(connection, name, parent).files()] if parent else []
            for name, parent in parents.items()
        }
        with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
            downloads = BlockDownloads(Path(scratch))
            library = LibrarySnapshot(connection, parents[REPO], downloads, parents.get(masks.REPO, ""))
            hidden = {each: library.hidden(each) | library.hashes(each).keys() for each in library.fetched}
            in_bucket = sum(len(library.names_in(each)) for each in hidden)
        if hidden:
            edits[masks.REPO] += [PutFile(masks.path(each), masks.content(names)) for each, names in hidden.items()]
        return {name: filesets.make(Repository(connection, name).requests(each)) for name, each in edits.items()}

    with FileSets(connection) as filesets:
        return IngestResult([], library_commit.write(connection, content), in_bucket=in_bucket)


_LAST_STORED = (
    "the last of exact copies whose bytes the library holds: the others stay at their URLs and can vanish "
    "(`lookalike remove NAME` removes it all the same)"
)


def _last_stored(library: LibrarySnapshot, names: Collection[str], contents: ContentReader) -> list[str]:
    """Those of the pictures to remove that are the last stored ones of exact copies, of which others stay at URLs."""
    at_urls = library.at_urls()
    gone = set(names)
    if not at_urls or gone <= at_urls:
        return []
    known = contents()
    hashes = {name: sha256 for block in library.blocks for name, sha256 in library.names_in(block).items()}
    own = {name: files[0] for name in gone - hashes.keys() if (files := library.files(name))}
    hashes |= {name: digest(library.content(path)) for name, path in own.items()}

    def last() -> set[str]:
        copies = defaultdict[str, set[str]](set)
        for name, sha256 in hashes.items():
            copies[known.get(sha256, sha256)].add(name)
        return set().union(*(url_records.last_stored(each, gone, at_urls) for each in copies.values()))

    if last():  # only then it matters what the others hold
        alone = {unescape(each): each for each in library.entries if each not in library.blocks and each[-1] != "/"}
        hashes |= {name: digest(library.content(f"/{alone[name]}")) for name in alone.keys() - hashes.keys()}
    return sorted(last())


def _absence(library: LibrarySnapshot, name: str) -> str:
    parts = name.split("/")
    above = ("/".join(parts[:end]) for end in range(len(parts) - 1, 0, -1))
    holder = next((each for each in above if library.holds(each)), None)
    return "not in the library" if holder is None else f"inside {holder}, which can only be removed as a whole"


def _remove(
    connection: Connection,
    choose: PictureChoice,
    head: str | None = None,
    description: str = "",
    beside: OtherEdits = MappingProxyType({}),
) -> IngestResult:
    """head: the only commit to remove from, None for whichever is the newest."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch, FileSets(connection) as filesets:
        changing = LibraryCommit(connection, filesets, BlockDownloads(Path(scratch)), choose=choose)
        commit = changing.make(description, head, _stated(beside))
        return IngestResult(changing.removed, commit, hidden=changing.hidden, in_bucket=changing.in_bucket)


def _stated(beside: OtherEdits) -> OtherEdits:
    """Only repos with edits: none gets a commit for nothing."""
    return {repo: edits for repo, edits in beside.items() if edits}
