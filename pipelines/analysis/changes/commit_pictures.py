"""The pictures by which two commits of the library, or of the queries, differ: pictures and not files, since one file
may be a block or an archive of many.

Server and files tell only which files differ. The names and hashes of the pictures in them are taken from the output of
preprocess: from the ends of its packs, without the pixels. Each pack is read once on a machine.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain

from pipelines.client.commit_history import CommitHistory, FileChange, FilePair
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.library.content_cache import ContentCache
from stages.files import pack_tails
from stages.record import part_names

PREPROCESS = {"images": "preprocess", "queries": "preprocess-queries"}
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

    def only(self, name: str) -> "PictureChanges":
        """The same with nothing but the picture of that name, and those below a folder of that name."""
        lists = (self.added, self.changed, self.removed, self.rejected)
        return PictureChanges(*(tuple(e for e in each if e == name or e.startswith(f"{name}/")) for each in lists))


class CommitPictures:
    """The pictures of `images` and `queries` at commits. kept: see `pipelines.library.content_cache`."""

    def __init__(self, connection: Connection, kept: ContentCache) -> None:
        self._connection = connection
        self._history = CommitHistory(connection)
        self._kept = kept

    def between(
        self,
        repo: str,
        new: str,
        old: str | None,
        computed: tuple[str, str] | None = None,
        concerns: Callable[[str], bool] = lambda _: True,
    ) -> PictureChanges:
        """The difference of a repo's commit `new` from `old`: "" for an empty repo, None for its parent. computed: the
        commits of preprocess that read these two, by default those of the same ids. concerns: whether a top-level entry
        is to be looked at."""
        pipeline = PREPROCESS[repo]
        entries = {each.path.split("/")[1] for each in self._pairs(repo, new, old)}
        marks = {part_names.source_name(each) for each in entries if concerns(each)}
        if not marks:
            return PictureChanges()
        after, before = computed or (new, old)
        made = [each for each in self._pairs(pipeline, after, before) if _marked(each.path) in marks]
        has = self._sources(pipeline, after, {each.path: each.new for each in made if each.new is not None})
        had = self._sources(pipeline, before or "", {each.path: each.old for each in made if each.old is not None})
        return PictureChanges(
            added=tuple(sorted(has.keys() - had.keys())),
            changed=tuple(sorted(name for name in has.keys() & had.keys() if has[name] != had[name])),
            removed=tuple(sorted(had.keys() - has.keys())),
            rejected=tuple(sorted(self._rejected(pipeline, after, made))),
        )

    def at(self, repo: str, computed: str) -> set[str]:
        """The true names of all pictures, and of the files that preprocess rejected; `computed` is its commit."""
        pipeline = PREPROCESS[repo]
        files = {each.path: each for each in self._history.files(pipeline, computed)}
        pairs = [FilePair(path, None, each) for path, each in files.items()]
        return {*self._sources(pipeline, computed, files), *self._rejected(pipeline, computed, pairs)}

    def _pairs(self, repo: str, new: str, old: str | None) -> list[FilePair]:
        if old == "":
            return [FilePair(each.path, None, each) for each in self._history.files(repo, new)]
        return self._history.pairs(repo, new, old or "")

    def _sources(self, pipeline: str, commit: str, files: Mapping[str, FileChange]) -> dict[str, str]:
        """The sources in those of these files that are packs."""
        found: dict[str, str] = {}
        missing: list[FileChange] = []
        for path, each in files.items():
            if path.endswith(".npy"):
                known = self._kept.get(_KEY + bytes.fromhex(each.hash))
                missing += [each] if known is None else []
                found |= known or {}
        if missing:
            for pack, sources in self._read(Repository(self._connection, pipeline, commit), missing):
                self._kept.put(_KEY + bytes.fromhex(pack.hash), sources)
                found |= sources
        self._kept.save()
        return found

    def _read(self, repo: Repository, packs: list[FileChange]) -> Iterator[tuple[FileChange, dict[str, str]]]:
        side = pack_tails.side_of(repo.begin(packs[0].path))

        def read(pack: FileChange) -> tuple[FileChange, dict[str, str]]:
            def rest(offset: int) -> bytes:
                return b"".join(repo.pieces(pack.path, offset))

            found = pack_tails.find(rest, pack.size, side) if side is not None else None
            if found is None:  # pictures of another size, in a commit whose job failed
                own = pack_tails.side_of(repo.begin(pack.path))
                found = pack_tails.find(rest, pack.size, own) if own is not None else None
            return pack, {each.path: each.sha256 for row in found or () for each in row.sources}

        with ThreadPoolExecutor(_READERS) as readers:
            yield from readers.map(read, packs)

    def _rejected(self, pipeline: str, commit: str, pairs: Iterable[FilePair]) -> set[str]:
        new = [each.path for each in pairs if each.new is not None and each.path.startswith("/rejected/")]
        repo = Repository(self._connection, pipeline, commit)
        lines = chain.from_iterable(repo.read(path).splitlines() for path in new)
        return {pack_tails.source_of(line) for line in lines}


def _marked(path: str) -> str:
    """The name of the top-level entry, see `part_names.source_name`, that preprocess made a file from."""
    return path.rpartition("/")[2].partition(".")[0]
