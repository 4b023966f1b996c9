"""Blocks written again, which nothing else does: joined by `lookalike compact`, so that a library has few of them and
few files, and by `lookalike remove --purge` without pictures whose bytes are to go.

Every picture of a block that is written again is decoded and has its vector computed again. Earlier commits keep the
bytes, until their sets are squashed: a set holds the files of `images` and what pipelines computed from them.
"""

import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import grpc
from python_pachyderm.proto.v2.pfs import pfs_pb2

from pipelines.client.commit_history import CommitHistory
from pipelines.client.commit_sets import ANSWERS
from pipelines.client.commit_writer import MovedHeadError
from pipelines.client.deployment import part_sizes
from pipelines.client.file_sets import FileSets
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library.block_store import BlockDownloads
from pipelines.library.library_commit import LibraryCommit, OtherEdits, UploadProgress
from pipelines.library.picture_sources import PictureSource
from pipelines.library.selection import select
from pipelines.library.snapshots import REPO, LibrarySnapshot, open_library
from pipelines.specifications.pipeline_specs import SOURCES
from stages.record import masks, url_records
from stages.record.file_kinds import kind_of
from stages.record.pfs_names import unescape

_READERS = 8


@dataclass(frozen=True, slots=True)
class BlockRewrite:
    """Blocks to write again, on top of the commit `head` of `images`. files: the true names of the pictures that are
    files now. removed: those of the pictures to remove. hidden: the number of pictures removed already whose bytes go.
    kept: the number of pictures in the new blocks. made: that of the new blocks."""

    head: str
    blocks: tuple[str, ...]
    files: tuple[str, ...]
    removed: tuple[str, ...]
    hidden: int
    kept: int
    made: int

    def __bool__(self) -> bool:
        return bool(self.blocks or self.files or self.removed)


def joined(connection: Connection) -> BlockRewrite:
    """What can be joined: blocks of which most pictures are hidden and, where that makes fewer, small ones and pictures
    that are files of their own."""
    limit = _limit(connection)
    with open_library(connection) as library:
        live = {block: len(library.names_in(block)) for block in library.blocks if block not in library.fetched}
        most = [block for block, number in live.items() if 2 * number <= len(library.hashes(block))]
        small = [block for block, number in live.items() if 2 * number <= limit and block not in most]
        single = [entry for entry in library.entries if entry not in library.blocks and entry[-1] != "/"]
        with ThreadPoolExecutor(_READERS) as readers:
            heads = readers.map(library.head, single)
            files = [unescape(entry) for entry, head in zip(single, heads, strict=True) if kind_of(head).is_picture]
    made = _made(live, (*most, *small), len(files), limit)
    if made >= len(most) + len(small) + len(files):  # as for one small block beside large ones
        small, files = [], []
        made = _made(live, most, 0, limit)
    blocks = (*most, *small)
    kept = sum(live[block] for block in blocks) + len(files)
    hidden = sum(len(library.hashes(block)) - live[block] for block in blocks)
    return BlockRewrite(library.commit, blocks, tuple(files), (), hidden, kept, made)


def purged(connection: Connection, words: Sequence[str]) -> BlockRewrite:
    """The blocks without the pictures that these words mean, see `selection.select`, also of hidden ones. Raises
    LookalikeError if a word means none."""
    with open_library(connection) as library:

        def holds(name: str) -> bool:
            return bool(library.holders(name)) or library.holds(name)

        def names() -> set[str]:
            return library.names().union(*map(library.hashes, library.blocks))

        gone = select(words, holds, names, "the library or hidden in it")
        blocks = list(dict.fromkeys(block for name in gone for block in library.holders(name)))
        if kept_elsewhere := [name for name in gone if not library.fetched.keys().isdisjoint(library.holders(name))]:
            raise LookalikeError(
                f"{kept_elsewhere[0]} comes from a bucket, whose next listing would bring its bytes back: delete it "
                "there, or hide it with `lookalike remove` without --purge"
            )
        live = [library.names_in(block).keys() for block in blocks]
        kept = sum(len(names - set(gone)) for names in live)
        hidden = sum(len(library.hashes(block)) for block in blocks) - sum(map(len, live))
    return BlockRewrite(library.commit, tuple(blocks), (), tuple(gone), hidden, kept, -(-kept // _limit(connection)))


def write(
    connection: Connection, rewrite: BlockRewrite, report: UploadProgress = lambda _: None, apart: bool = False
) -> str:
    """Writes the blocks again in one commit, and returns its id. apart: whether all other source repos get a commit in
    its set: then nothing that is computed from now on depends on an earlier set, and these can be squashed. Raises
    LookalikeError, and changes nothing, if others have changed the library meanwhile."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch, FileSets(connection) as filesets:
        place = Path(scratch) / "files"
        place.mkdir()
        downloads = BlockDownloads(Path(scratch))
        library = LibrarySnapshot(connection, rewrite.head, downloads)
        sources = [_fetched(library, name, place / str(number)) for number, name in enumerate(rewrite.files)]
        changing = LibraryCommit(
            connection,
            filesets,
            downloads,
            sources,
            lambda _: rewrite.removed,
            most_single=0,
            report=report,
            repack=rewrite.blocks,
        )
        try:
            others: OtherEdits = {each: () for each in SOURCES if apart and each not in (REPO, masks.REPO)}
            return changing.make(head=rewrite.head, beside=others)
        except MovedHeadError as error:
            raise LookalikeError(
                f"others have changed the library meanwhile (commit {error.newest}), so nothing was written: try again"
            ) from error


def holding(connection: Connection, names: Collection[str], commit: str) -> list[str]:
    """The commit sets before a commit of `images`, the newest first, that may hold bytes of pictures of these true
    names: all from the first one that did."""
    history = CommitHistory(connection)
    records = {each.id: each for each in history.records(REPO)}
    began = records[commit].started
    first: datetime | None = None
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        downloads = BlockDownloads(Path(scratch))
        for each in records.values():
            if each.started < began and not each.error:
                library = LibrarySnapshot(connection, each.id, downloads, "")
                first = each.started if any(map(library.holds, names)) else first
    if first is None:
        return []
    sets = {each.id: each for repo in (*SOURCES, ANSWERS) for each in history.records(repo)}
    found = [each for each in sets.values() if first <= each.started < began]
    return [each.id for each in sorted(found, key=lambda each: each.started, reverse=True)]


def squash(connection: Connection, sets: Collection[str]) -> dict[str, str]:
    """Squashes these commit sets, given with the newest first. Returns the reasons of the server for which some stay:
    one that holds the newest commit of a repo, or a version of a pipeline."""
    kept: dict[str, str] = {}
    for each in sets:
        try:
            connection.pfs.SquashCommitSet(pfs_pb2.SquashCommitSetRequest(commit_set=pfs_pb2.CommitSet(id=each)))
        except grpc.RpcError as error:
            kept[each] = str(error.details())
    return kept


def _made(live: Mapping[str, int], blocks: Iterable[str], files: int, limit: int) -> int:
    """The number of blocks that take these blocks' pictures and so many files. Records have blocks of their own."""
    recorded = sum(live[block] for block in blocks if url_records.is_file(block))
    stored = sum(live[block] for block in blocks) - recorded + files
    return -(-stored // limit) + -(-recorded // limit)


def _fetched(library: LibrarySnapshot, name: str, file: Path) -> PictureSource:
    """A picture that is a file of the library, copied to this machine."""
    with file.open("wb") as target:
        target.writelines(library.content(library.files(name)[0]))
    return PictureSource(name, file, file.stat().st_size)


def _limit(connection: Connection) -> int:
    return part_sizes.part(info.details for info in ProjectJobs(connection).pipelines().values())
