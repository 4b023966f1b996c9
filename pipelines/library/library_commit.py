"""The content of the commits that put pictures into the library and remove others, on top of any others: of `images`,
and of `masks`, which hide the pictures of blocks that are replaced or removed.

Blocks are immutable, so nothing that is there is read, and preprocess and features compute what is new. What has been
uploaded is used again after another writer's commit.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType

from pipelines.client.commit_writer import CommitWriter
from pipelines.client.deployment import part_sizes
from pipelines.client.deployment.deployment import has_repo
from pipelines.client.file_sets import FileSets
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import CopyFile, DeleteFile, EditUpload, FileEdit, PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library.block_store import BlockDownloads, BlockUploads
from pipelines.library.picture_sources import PictureSource
from pipelines.library.snapshots import REPO, LibrarySnapshot, own_path
from stages.files import blocks
from stages.files.blocks import ByteRange, IngestBlock, RecordBlock
from stages.record import masks, url_records
from stages.record.block_names import BlockMember
from stages.record.url_records import UrlRecord

SINGLE_FILES = 8
"""Up to so many pictures are put as top-level files of their own."""

OtherEdits = Mapping[str, Sequence[FileEdit]]
"""Edits of other repos, by name, that belong to a change of pictures; a repo without edits gets a commit that changes
nothing, if it exists."""

UploadProgress = Callable[[int], None]
"""Called with the number of files put since the last call."""

PictureChoice = Callable[[LibrarySnapshot], Iterable[str]]
"""Names the pictures of a library to remove, by true name. Raises LookalikeError to remove none."""


@dataclass(slots=True)
class _Changes:
    """What a commit does to the pictures of a library: the names that blocks hide from now on, and those that they hide
    no more, by block; the names whose files go; the pictures that become files; the bytes of those for new blocks; and
    the records of those that stay at their URLs, for blocks of these."""

    hidden: dict[str, set[str]] = field(default_factory=dict)
    shown: dict[str, set[str]] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    single: list[PictureSource] = field(default_factory=list)
    packed: dict[str, ByteRange] = field(default_factory=dict)
    recorded: dict[str, UrlRecord] = field(default_factory=dict)

    def hide(self, library: LibrarySnapshot, name: str, but: str = "") -> None:
        """Takes a picture out of every block except one."""
        for block in library.holders(name):
            if block != but and name not in library.hidden(block):
                self.hidden.setdefault(block, set()).add(name)


class LibraryCommit:
    """Pictures being put and removed. most_single: the most that become files of their own; of more, all go into
    blocks. copies: of pictures of the library equal to some to put, by name; used where these become files. repack: the
    blocks whose pictures go into new ones, without those that are hidden or removed.

    Of the last content, `removed` are the names of the pictures that it removes, `hidden` is the number of those that
    blocks hold on to, and `in_bucket` that of those that a bucket still has.
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
        repack: Sequence[str] = (),
    ) -> None:
        self.removed: list[str] = []
        self.hidden = 0
        self.in_bucket = 0
        self.unreadable: dict[str, str] = {}
        """The reasons for which files could not be read, by path on disk."""
        self._connection = connection
        self._repo = Repository(connection, REPO)
        self._filesets = filesets
        self._downloads = downloads
        self._uploads = BlockUploads(self._repo, filesets)
        self._choose = choose
        self._repack = repack
        self._most_single = SINGLE_FILES if most_single is None else most_single
        self._report = report
        self._copies = copies or {}
        self._measured: dict[str, BlockMember] = {}
        self._files: dict[str, frozenset[str]] = {}
        """The file sets of pictures that are files of their own, with the names in each."""
        self._limit = part_sizes.part(info.details for info in ProjectJobs(connection).pipelines().values())
        self._sources = {each.name: each for each in sources}
        self._many = self._holding_many(sources)

    @property
    def names(self) -> list[str]:
        """The true names of the pictures to put that could be read."""
        return list(self._sources)

    def make(self, description: str = "", head: str | None = None, beside: OtherEdits = MappingProxyType({})) -> str:
        """Makes the commit, and returns its id. head: the only commit of `images` that may be below it, see
        CommitWriter.make. beside: goes into the same commit set."""
        uploads = {
            repo: EditUpload(Repository(self._connection, repo), self._filesets, edits)
            for repo, edits in beside.items()
            if edits or has_repo(self._connection, repo)
        }

        def content(parents: Mapping[str, str]) -> dict[str, str]:
            others = {repo: each.content(parents[repo]) for repo, each in uploads.items()}
            return {**self.content(parents), **others}

        return write(self._connection, content, description, head, uploads)

    def content(self, parents: Mapping[str, str]) -> dict[str, str]:
        """The file sets, by repo, that put and remove the pictures on top of commits.

        Raises LookalikeError if none can be read, or if a name is taken by something that cannot be replaced.
        """
        library = LibrarySnapshot(self._connection, parents[REPO], self._downloads, parents.get(masks.REPO, ""))
        self.removed = list(dict.fromkeys(self._choose(library)))
        while True:
            try:
                changes = self._planned(library)
                packed = self._put_blocks(changes)
                self._put_files(library, changes.single)
                break
            except OSError as error:
                self._leave_out(error)
        if self.unreadable and not self._sources and not self.removed:
            path, reason = next(iter(self.unreadable.items()))
            raise LookalikeError(f"cannot read {path}: {reason}: nothing was put")
        hidden = _masks_after(library, changes)
        empty = [
            block
            for block, names in hidden.items()
            if block not in library.fetched and names >= library.hashes(block).keys()
        ]
        removals = self._removals(library, changes, [block for block in empty if block not in packed])
        parts = [*self._files, *packed.values()]
        if removals or not parts:
            parts.append(self._filesets.make(self._repo.requests(removals)))
        kept = hidden | dict.fromkeys(empty, frozenset[str]())
        self.hidden = len({name for block, names in kept.items() for name in names - library.hidden(block)})
        self.in_bucket = sum(not library.fetched.keys().isdisjoint(library.holders(name)) for name in self.removed)
        edits = _mask_edits(library, kept)
        return {REPO: self._filesets.compose(parts), **self._masks(edits, parents)}

    def _masks(self, edits: Sequence[FileEdit], parents: Mapping[str, str]) -> dict[str, str]:
        """The file set for `masks`, if the library has that repo."""
        if masks.REPO in parents:
            repo = Repository(self._connection, masks.REPO)
            return {masks.REPO: self._filesets.make(repo.requests(edits))}
        if edits:
            raise LookalikeError(
                f"nothing was changed: the library has no repo {masks.REPO}, since an earlier version made it. Run "
                "`lookalike upgrade`, then this again"
            )
        return {}

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

    def _planned(self, library: LibrarySnapshot) -> _Changes:
        """Raises OSError if a picture cannot be read."""
        changes = _Changes(gone=[*self.removed])
        for name in self.removed:
            changes.hide(library, name)
        new = [each for each in self._sources.values() if not self._is_in_block(library, each, changes)]
        for each in new:
            changes.hide(library, each.name)
        changes.single = [each for each in new if each.name in self._many]
        lone = [each for each in new if each.name not in self._many]
        changes.recorded = {each.name: each.record for each in lone if each.record is not None}
        lone = [each for each in lone if each.record is None]
        if len(lone) <= self._most_single:
            changes.single += lone
        else:
            changes.packed = {each.name: each.span for each in lone}
        for block in self._repack:
            if url_records.is_file(block):
                records = library.records(block)
                changes.recorded = {**records, **changes.recorded}
                changes.hidden.setdefault(block, set()).update(records)
                continue
            held = library.pictures(block)
            changes.packed = {**held, **changes.packed}
            changes.hidden.setdefault(block, set()).update(held)
        for name in self.removed:
            changes.packed.pop(name, None)
            changes.recorded.pop(name, None)
        return changes

    def _is_in_block(self, library: LibrarySnapshot, source: PictureSource, changes: _Changes) -> bool:
        """Whether a block that stays holds a picture with these bytes, which is then shown again if it was hidden."""
        holders = [block for block in library.holders(source.name) if block not in self._repack]
        if not holders:
            return False
        sha256 = source.record.sha256 if source.record else self._member(source.name, source.span).sha256
        equal = [block for block in holders if library.hashes(block)[source.name] == sha256]
        if not equal:
            return False
        block = min(equal, key=lambda each: source.name in library.hidden(each))
        changes.shown.setdefault(block, set()).add(source.name)
        changes.hide(library, source.name, but=block)
        changes.gone.append(source.name)
        return True

    def _member(self, name: str, span: ByteRange) -> BlockMember:
        if name not in self._measured:
            self._measured[name] = blocks.measure(name, span)
        return self._measured[name]

    def _put_blocks(self, changes: _Changes) -> dict[str, str]:
        """Uploads new blocks; the file set of each by its name. Raises OSError if a picture cannot be read."""
        planned = (
            IngestBlock(tuple((self._member(name, span), span) for name, span in each.items()))
            for each in blocks.cut(changes.packed, self._limit)
        )
        recorded = (RecordBlock(tuple(each.values())) for each in blocks.cut(changes.recorded, self._limit))
        return self._uploads.put_all(chain(planned, recorded), self._report)

    def _put_files(self, library: LibrarySnapshot, sources: Sequence[PictureSource]) -> None:
        """Uploads the pictures that become files of their own, unless they are uploaded. Raises OSError if one cannot
        be read."""
        for each in sources:
            if library.has_directory(own_path(each.name)):
                raise LookalikeError(
                    f"{REPO} has a directory called {each.name}: rename {each.path}, or remove the directory with "
                    f"`lookalike remove {each.name}/`"
                )
        there = self._uploaded()
        new = {each.name: each for each in sources if each.name not in there}
        if new:
            edits = [
                self._copies.get(name) or PutFile(own_path(name), blocks.content(each.span))
                for name, each in new.items()
            ]
            made = self._filesets.make(self._repo.requests(edits, lambda _: self._report(1)))
            self._files[made] = frozenset(new)

    def _removals(self, library: LibrarySnapshot, changes: _Changes, blocks_gone: Sequence[str]) -> list[FileEdit]:
        """The removal of blocks without pictures, and of files where they are not any more."""
        single = {each.name for each in changes.single}
        paths = [f"/{block}" for block in blocks_gone]
        for name in (*changes.gone, *changes.packed, *changes.recorded):
            paths += library.files(name)
        for name in single:
            paths += [path for path in library.files(name) if path != own_path(name)]
        paths += [own_path(name) for name in self._uploaded() - single]
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


def _masks_after(library: LibrarySnapshot, changes: _Changes) -> dict[str, frozenset[str]]:
    """The names that blocks hide after a change, for those in which it changes."""
    return {
        block: (library.hidden(block) | changes.hidden.get(block, set())) - changes.shown.get(block, set())
        for block in sorted(changes.hidden.keys() | changes.shown.keys())
    }


def _mask_edits(library: LibrarySnapshot, hidden: Mapping[str, AbstractSet[str]]) -> list[FileEdit]:
    """The edits of masks to these; those of entries that are gone are removed."""
    others = library.masks.keys() - set(map(masks.path, library.blocks))
    gone = others - set(map(masks.path, library.entries)) if others else others
    edits: list[FileEdit] = [DeleteFile(path) for path in sorted(gone)]
    for block, names in hidden.items():
        path = masks.path(block)
        if names:
            edits.append(PutFile(path, masks.content(names)))
        elif path in library.masks:
            edits.append(DeleteFile(path))
    return edits


def write(
    connection: Connection,
    content: Callable[[Mapping[str, str]], Mapping[str, str]],
    description: str = "",
    head: str | None = None,
    others: Iterable[str] = (),
) -> str:
    """Makes one commit set with changes of the library, and returns its id. content: gives the file sets of `images`,
    of `masks` if it is given a parent there, and of other repos, see CommitWriter.make. head: the only commit of
    `images` that may be below, None for any."""
    repos = [REPO, masks.REPO] if has_repo(connection, masks.REPO) else [REPO]
    return CommitWriter(connection, *repos, *others).make(content, description, None if head is None else {REPO: head})
