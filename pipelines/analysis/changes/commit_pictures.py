"""The pictures by which two commits of the library, or of the queries, differ: pictures and not files, since one file
may be a block or an archive of many.

Server and files tell only which files differ. The names and hashes of the pictures in them are taken from the output of
preprocess: from the tables of its packs, without the pictures. Each pack is read once on a machine.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from pipelines.client.commit_history import CommitHistory, FilePair
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.client.stored_file import StoredFile
from pipelines.library import snapshots
from pipelines.library.content_cache import ContentCache
from pipelines.library.snapshots import FETCHED, REPO
from stages.files import pack_tables, path_globs
from stages.record import masks, part_names

PREPROCESS = {"images": "preprocess", "queries": "preprocess-queries", FETCHED: "preprocess"}
"""The pipeline that reads the pictures of a repo."""

_KEY = b"pack:"
_READERS = 8


@dataclass(frozen=True, slots=True)
class PictureChanges:
    """The pictures by which a commit differs from another, by true name, each list sorted, and the files that have
    become unsearchable."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed or self.rejected)

    def joined(self, other: "PictureChanges") -> "PictureChanges":
        """These and others."""
        return PictureChanges(*(tuple(sorted({*a, *b})) for a, b in zip(_lists(self), _lists(other), strict=True)))

    def only(self, name: str) -> "PictureChanges":
        """The same with nothing but the picture of that name, and those below a folder of that name."""
        return PictureChanges(
            *(tuple(e for e in each if e == name or e.startswith(f"{name}/")) for each in _lists(self))
        )


def _lists(changes: PictureChanges) -> tuple[tuple[str, ...], ...]:
    return changes.added, changes.changed, changes.removed, changes.rejected


class CommitPictures:
    """The pictures of `images` and `queries` at commits. kept: see `pipelines.library.content_cache`."""

    def __init__(self, connection: Connection, kept: ContentCache) -> None:
        self._connection = connection
        self._history = CommitHistory(connection)
        self._kept = kept
        self._masks: dict[str, Mapping[str, frozenset[str]]] = {}

    def between(
        self,
        repo: str,
        new: str,
        old: str | None,
        computed: tuple[str, str],
        concerns: Callable[[str], bool] = lambda _: True,
    ) -> PictureChanges:
        """The difference of a repo's commit `new` from `old`: "" for an empty repo, None for its parent. computed: the
        commits of preprocess that read these two. concerns: whether a top-level entry is to be looked at."""
        entries = {each.path.split("/")[1] for each in self._history.pairs(repo, new, old)}
        marks = {part_names.source_name(each) for each in entries if concerns(each)}
        after, before = (self._hidden(repo, each) for each in computed)
        marks |= {each for each in after.keys() | before.keys() if after.get(each) != before.get(each)}
        if not marks:
            return PictureChanges()
        made = [each for each in self._history.pairs(PREPROCESS[repo], *computed) if _marked(each.path) in marks]
        # Packs that are the same come last: they are in both commits.
        same = self._packs(computed[0], marks - {_marked(each.path) for each in made})
        has = self._sources([*(each.new for each in made), *same], after)
        had = self._sources([*(each.old for each in made), *same], before)
        return PictureChanges(
            added=tuple(sorted(has.keys() - had.keys())),
            changed=tuple(sorted(name for name in has.keys() & had.keys() if has[name] != had[name])),
            removed=tuple(sorted(had.keys() - has.keys())),
            rejected=tuple(sorted(self._rejected(made, after))),
        )

    def at(self, repo: str, computed: str) -> set[str]:
        """The true names of all pictures, and of the files that preprocess rejected; `computed` is its commit."""
        pairs = self._history.pairs(PREPROCESS[repo], computed, "")
        hidden = self._hidden(repo, computed)
        return {*self._sources((each.new for each in pairs), hidden), *self._rejected(pairs, hidden)}

    def hashes(self, repo: str, computed: str) -> dict[str, str]:
        """The SHA-256 of the bytes of every picture by true name; `computed` is the commit of preprocess."""
        packs = (each.new for each in self._history.pairs(PREPROCESS[repo], computed, ""))
        return self._sources(packs, self._hidden(repo, computed))

    def meant(self, filter: str, commit: str = "") -> str:
        """The filter of library pictures that a user means at a commit of `images`, by default at the newest one that
        preprocess has read: see `stages.files.path_globs.meant`."""
        records = self._history.records(PREPROCESS["images"]) if path_globs.is_glob(filter) else ()
        read = next((each.id for each in records if each.good and commit in ("", each.id)), None)
        names = self.at("images", read) if read is not None else set()
        return path_globs.meant(filter, lambda name: any(e.startswith(f"{name}/") for e in names), names.__contains__)

    def _hidden(self, repo: str, computed: str) -> Mapping[str, frozenset[str]]:
        """The true names that files of `images` hide at a commit of preprocess, by their marks."""
        if repo not in (REPO, FETCHED) or not computed:
            return {}
        commit = snapshots.mask_commit(self._connection, computed)
        if commit not in self._masks:
            found = snapshots.read_masks(self._connection, commit)
            self._masks[commit] = {masks.source_of(path): names for path, names in found.items()}
        return self._masks[commit]

    def _packs(self, computed: str, marks: Iterable[str]) -> list[StoredFile]:
        """The packs that a commit of preprocess has of blocks, by their marks."""
        repo = Repository(self._connection, PREPROCESS[REPO], computed)
        return [file for mark in sorted(marks) for file in repo.glob(f"/library/{mark}*/{mark}.*")]

    def _sources(self, files: Iterable[StoredFile | None], hidden: Mapping[str, frozenset[str]]) -> dict[str, str]:
        """The sources in those of these files, all in one commit, that are there, are packs and do not hide them."""
        packs = [
            each
            for each in files
            if each is not None and each.path.endswith((pack_tables.SUFFIX, pack_tables.FORMER_SUFFIX))
        ]
        known = {each: self._kept.get(_KEY + bytes.fromhex(each.hash)) for each in packs}
        missing = [each for each, sources in known.items() if sources is None]
        for pack, sources in self._read(missing) if missing else ():
            self._kept.put(_KEY + bytes.fromhex(pack.hash), sources)
            known[pack] = sources
        self._kept.save()
        return {
            name: sha256
            for pack, sources in known.items()
            for name, sha256 in (sources or {}).items()
            if name not in hidden.get(_marked(pack.path), ())
        }

    def _read(self, packs: list[StoredFile]) -> Iterator[tuple[StoredFile, dict[str, str]]]:
        repo = Repository(self._connection, packs[0].repo, packs[0].commit)

        def read(pack: StoredFile) -> tuple[StoredFile, dict[str, str]]:
            with suppress(ValueError):
                rows = pack_tables.read_table(partial(repo.read, pack.path)).rows
                return pack, {each.path: each.sha256 for row in rows for each in row.sources}
            return pack, {}

        with ThreadPoolExecutor(_READERS) as readers:
            yield from readers.map(read, packs)

    def _rejected(self, pairs: Iterable[FilePair], hidden: Mapping[str, frozenset[str]]) -> set[str]:
        new = [each.new for each in pairs if each.new is not None and each.path.startswith("/rejected/")]
        found: set[str] = set()
        for each in new:
            content = Repository(self._connection, each.repo, each.commit).read(each.path)
            found |= set(map(pack_tables.source_of, content.splitlines())) - hidden.get(_marked(each.path), frozenset())
        return found


def _marked(path: str) -> str:
    """The name of the top-level entry, see `part_names.source_name`, that preprocess made a file from."""
    return path.rpartition("/")[2].partition(".")[0]
