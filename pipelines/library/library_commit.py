"""The content of a commit that puts pictures into the library and removes others, on top of any other commit.

What has been uploaded for a leaf of blocks is used again as long as the leaf and the pictures for it are the same:
after another writer's commit only the blocks that this changed are built again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass

from pipelines.client.deployment import part_sizes
from pipelines.client.file_sets import FileSets
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import CopyFile, DeleteFile, FileEdit, PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library import blocks
from pipelines.library.blocks import ByteRange
from pipelines.library.picture_sources import PictureSource
from pipelines.library.snapshots import REPO, BlockDownloads, BlockUploads, LibrarySnapshot, block_path, own_path

SINGLE_FILES = 1000
"""Up to so many pictures are put as top-level files of their own, however few blocks they would change."""

_REWRITTEN = 3
"""Pictures of blocks that preprocess and features compute again in about the time that they take for one more that is a
file of its own, and so a datum."""

UploadProgress = Callable[[int], None]
"""Called with the number of files put since the last call."""

PictureChoice = Callable[[LibrarySnapshot], Iterable[str]]
"""Names the pictures of a library to remove, by true name. Raises LookalikeError to remove none."""

_Key = tuple[str, bytes | None, tuple[str, ...], bool]
"""A leaf's prefix, the hash of its block, the names of the pictures for it, and whether new ones go into blocks."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """The outcome for the pictures of one leaf or several: file sets of the new blocks, the paths of blocks that are
    gone, the names of the pictures in blocks, and the pictures that become files of their own."""

    filesets: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    packed: tuple[str, ...] = ()
    single: tuple[PictureSource, ...] = ()


class LibraryCommit:
    """Pictures being put and removed. most_single: the most that become files of their own, except for those that are
    in a block already; of more, all go into blocks. None for SINGLE_FILES, or more if many blocks would change: all
    pictures of a block that gets a new one are computed again. copies: of pictures of the library equal to some to
    put, by name; used where these become files.

    `removed` are the names of the pictures that the last content removes.
    """

    def __init__(
        self,
        connection: Connection,
        filesets: FileSets,
        downloads: BlockDownloads,
        sources: Sequence[PictureSource] = (),
        choose: PictureChoice = lambda _: (),
        most_single: int | None = None,
        report: UploadProgress = lambda _: None,
        copies: Mapping[str, CopyFile] | None = None,
    ) -> None:
        self.removed: list[str] = []
        self.unreadable: dict[str, str] = {}
        """The reasons for which files could not be read, by path on disk."""
        self._connection = connection
        self._repo = Repository(connection, REPO)
        self._filesets = filesets
        self._downloads = downloads
        self._uploads = BlockUploads(self._repo, filesets)
        self._choose = choose
        self._most_single = most_single
        self._in_blocks = False
        self._report = report
        self._copies = copies or {}
        self._leaves: dict[_Key, _Leaf] = {}
        self._files: dict[str, frozenset[str]] = {}
        """The file sets of pictures that are files of their own, with the names in each."""
        self._limit = part_sizes.part(info.details for info in ProjectJobs(connection).pipelines().values())
        self._sources = {each.name: each for each in sources}
        self._given = len(sources)
        self._many = self._holding_many(sources)

    @property
    def names(self) -> list[str]:
        """The true names of the pictures to put that could be read."""
        return list(self._sources)

    def content(self, parent: str) -> str:
        """The file set that puts and removes the pictures on top of a commit.

        Raises LookalikeError if none can be read, or if a name is taken by something that cannot be replaced.
        """
        library = LibrarySnapshot(self._connection, parent, self._downloads)
        self.removed = list(dict.fromkeys(self._choose(library)))
        shrunk: dict[str, set[str]] = {}
        for name in self.removed:
            home = library.home(name)
            if home is not None:
                shrunk.setdefault(home, set()).add(name)
        by_leaf = library.by_leaf(self._sources)
        self._in_blocks = self._given > self._most(library, by_leaf)
        if shrunk:
            leaves = [self._together(library, by_leaf, shrunk)]
        else:
            leaves = [self._leaf(library, prefix, names) for prefix, names in by_leaf.items()]
        self._put_files(library, [source for leaf in leaves for source in leaf.single])
        if self.unreadable and not self._sources and not self.removed:
            path, reason = next(iter(self.unreadable.items()))
            raise LookalikeError(f"cannot read {path}: {reason}: nothing was put")
        removals = self._removals(library, leaves)
        parts = [*self._files, *(each for leaf in leaves for each in leaf.filesets)]
        if removals or not parts:
            parts.append(self._filesets.make(self._repo.requests(removals)))
        return self._filesets.compose(parts)

    def _most(self, library: LibrarySnapshot, by_leaf: Iterable[str]) -> int:
        """The most pictures that become files of their own."""
        if self._most_single is not None:
            return self._most_single
        rewritten = self._limit * sum(prefix in library.blocks for prefix in by_leaf)
        single = len(library.entries) - len(library.blocks)  # their parts get the new ones, and are computed again
        return max(SINGLE_FILES, (rewritten - single) // _REWRITTEN)

    def _holding_many(self, sources: Sequence[PictureSource]) -> set[str]:
        """The names of files that may hold many pictures. Leaves out those that cannot be opened."""
        found = set()
        for each in sources:
            try:
                if each.holds_many:
                    found.add(each.name)
            except OSError as error:
                self._leave_out(error)
        return found

    def _leaf(self, library: LibrarySnapshot, prefix: str, names: Sequence[str]) -> _Leaf:
        while True:
            sources = [self._sources[name] for name in names if name in self._sources]
            key = (prefix, library.blocks.get(prefix), tuple(each.name for each in sources), self._in_blocks)
            try:
                if key not in self._leaves:
                    self._leaves[key] = self._packed(library, prefix, sources)
                    library.forget(prefix)
                return self._leaves[key]
            except OSError as error:
                self._leave_out(error)

    def _packed(self, library: LibrarySnapshot, prefix: str, sources: Sequence[PictureSource]) -> _Leaf:
        """Uploads the blocks of a leaf with the pictures that belong into them."""
        packed, single = self._placed(library, prefix, sources)
        if not packed:
            return _Leaf(single=single)
        spans = library.block(prefix) | packed
        leaves = blocks.divide(spans, prefix, self._limit)
        made = self._uploads.put_all(leaves, spans, lambda names: self._report(len(names & packed.keys())))
        divided = (block_path(prefix),) if prefix in library.blocks and prefix not in leaves else ()
        return _Leaf(made, divided, tuple(packed), single)

    def _together(
        self, library: LibrarySnapshot, by_leaf: Mapping[str, Sequence[str]], shrunk: Mapping[str, AbstractSet[str]]
    ) -> _Leaf:
        """Uploads the blocks of all leaves that get or lose pictures; those that have become small are joined."""
        while True:
            try:
                return self._joined(library, by_leaf, shrunk)
            except OSError as error:
                self._leave_out(error)

    def _joined(
        self, library: LibrarySnapshot, by_leaf: Mapping[str, Sequence[str]], shrunk: Mapping[str, AbstractSet[str]]
    ) -> _Leaf:
        after: dict[str, set[str]] = {}
        touched: set[str] = set()
        spans: dict[str, ByteRange] = {}
        put: dict[str, ByteRange] = {}
        single: list[PictureSource] = []
        for prefix in sorted(by_leaf.keys() | shrunk.keys()):
            sources = [self._sources[name] for name in by_leaf.get(prefix, ()) if name in self._sources]
            packed, alone = self._placed(library, prefix, sources)
            single += alone
            if packed or prefix in shrunk:
                touched.add(prefix)
                put |= packed
                spans |= library.block(prefix) | packed
                names = (library.block(prefix).keys() - shrunk.get(prefix, set())) | packed.keys()
                after |= blocks.divide(names, prefix, self._limit) or {prefix: set()}
        written, joined = blocks.join(after, library.blocks.keys() - touched, library.block, self._limit)
        for prefix in joined - touched:
            spans |= library.block(prefix)
        gone = ((touched | joined) - written.keys()) & library.blocks.keys()
        made = self._uploads.put_all(written, spans, lambda names: self._report(len(names & put.keys())))
        return _Leaf(made, tuple(map(block_path, sorted(gone))), tuple(put), tuple(single))

    def _placed(
        self, library: LibrarySnapshot, prefix: str, sources: Sequence[PictureSource]
    ) -> tuple[dict[str, ByteRange], tuple[PictureSource, ...]]:
        """The pictures of a leaf that belong into its blocks, and those that become files of their own."""
        held = library.block(prefix)
        taken = next((each for each in sources if each.name in self._many and each.name in held), None)
        if taken is not None:
            raise LookalikeError(
                f"{taken.path} holds many pictures, but the library has a single picture of that name: remove that "
                f"first, with `lookalike remove`"
            )
        packed = {
            each.name: each.span
            for each in sources
            if (self._in_blocks or each.name in held) and each.name not in self._many
        }
        return packed, tuple(each for each in sources if each.name not in packed)

    def _put_files(self, library: LibrarySnapshot, sources: Sequence[PictureSource]) -> None:
        """Uploads the pictures that become files of their own, unless they are uploaded."""
        for each in sources:
            if f"{own_path(each.name)[1:]}/" in library.entries:
                raise LookalikeError(
                    f"{REPO} has a directory called {each.name}: rename {each.path}, or remove the directory with "
                    f"`lookalike remove {each.name}/`"
                )
        there = self._uploaded()
        while new := [each for each in sources if each.name not in there and each.name in self._sources]:
            edits = [
                self._copies.get(each.name) or PutFile(own_path(each.name), blocks.content(each.span)) for each in new
            ]
            try:
                made = self._filesets.make(self._repo.requests(edits, lambda _: self._report(1)))
            except OSError as error:
                self._leave_out(error)
            else:
                self._files[made] = frozenset(each.name for each in new)
                return

    def _removals(self, library: LibrarySnapshot, leaves: Sequence[_Leaf]) -> list[FileEdit]:
        """The removal of blocks that are gone, and of pictures where they are not any more."""
        uploaded = self._uploaded()
        paths = [path for leaf in leaves for path in leaf.gone]
        paths += [path for name in self.removed for path in library.files(name)]
        for leaf in leaves:
            for name in leaf.packed:
                paths += [*library.files(name), *([own_path(name)] if name in uploaded else [])]
            for each in leaf.single:
                paths += [path for path in library.files(each.name) if path != own_path(each.name)]
        return [DeleteFile(path) for path in dict.fromkeys(paths)]

    def _uploaded(self) -> frozenset[str]:
        return frozenset().union(*self._files.values())

    def _leave_out(self, error: OSError) -> None:
        """Leaves out the file that cannot be read."""
        path = str(error.filename)
        doomed = [name for name, each in self._sources.items() if str(each.path) == path]
        if not doomed:
            raise error
        self.unreadable[path] = error.strerror or str(error)
        for name in doomed:
            del self._sources[name]
