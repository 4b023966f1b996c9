"""The segments of one commit of the index, brought to this machine and opened.

A segment that is open already is taken over. Of the others, files are kept by Pachyderm's hash of their content, so
only changed ones travel; the vectors, which lie in a file for each bucket, are put together in one file, which is kept
by the hashes of those. So a later start maps that file, and neither brings nor lists the files of the pieces.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from stages.datum.contract import DatumInput, StageError
from stages.datum.file_cache import FileCache
from stages.decode.tar_streams import ChunkReader, content, members, open_archive
from stages.files import vector_files
from stages.files.tables.index_table import TABLE
from stages.files.vector_files import VectorPlaces
from stages.knn.backend import Vectors
from stages.serving.follow import backbone_pool
from stages.serving.follow.pachyderm_client import CommitFacts, FileFacts, PachydermClient
from stages.serving.search.mapped_segment import FILES, MappedSegment, map_segment

_CALL = 1 << 20
"""Bytes that travel in the time that a call for a file of its own takes."""

_AGAIN = "reprocess the index pipeline: lookalike deploy --reprocess index"


@dataclass(frozen=True)
class SegmentListing:
    """A segment of a commit: its files that are opened as they are, and the directory of its vectors."""

    name: str
    files: tuple[FileFacts, ...]
    vectors: FileFacts

    @property
    def key(self) -> str:
        """Equal for segments of equal content."""
        return _digest(self.name, *(f"{each.path} {each.hash}" for each in (*self.files, self.vectors)))

    @property
    def together(self) -> str:
        """The hash by which its vectors are kept, put together. A directory's hash tells the content of its files but
        not their names, which the table has."""
        table = [each.hash for each in self.files if _name(each) == TABLE]
        return _digest("vectors", *table, self.vectors.hash)


def list_segments(server: PachydermClient, commit: CommitFacts) -> list[SegmentListing]:
    """The segments of a commit of the index, sorted by name. Raises StageError for those of another version."""
    found: dict[str, dict[str, FileFacts]] = {}
    for each in server.files(commit.repo, commit.id, "/*/*"):
        found.setdefault(each.path.partition("/")[0], {})[_name(each)] = each
    made = []
    for name, files in sorted(found.items()):
        directory = files.get(vector_files.DIRECTORY)
        if directory is None or not directory.is_directory:
            raise StageError(f"segment {name} has no vectors: another version of lookalike wrote it; {_AGAIN}")
        made.append(SegmentListing(name, tuple(files[each] for each in FILES if each in files), directory))
    return made


class SegmentFetcher:
    """Brings the segments of one commit."""

    def __init__(
        self,
        server: PachydermClient,
        cache: FileCache,
        commit: CommitFacts,
        listed: Sequence[SegmentListing],
        scratch: Path,
    ) -> None:
        """scratch: a directory of the cache's scratch directory, which may be deleted once the segments are open."""
        self._server = server
        self._cache = cache
        self._commit = commit
        self._listed = listed
        self._scratch = scratch
        # The files of pieces have the same vectors again. Where there is no room for both, those put together stay.
        self._keeps_pieces = 2 * sum(each.vectors.size for each in listed) <= cache.most

    def opened(self, held: Iterable[MappedSegment] = ()) -> list[MappedSegment]:
        """All segments. held: those that are open already, of which unchanged ones are taken over. Raises StageError
        for anything that the index stage did not write, PachydermError if it cannot be brought, and OSError."""
        known = {each.key: each for each in held}
        return [known[each.key] if each.key in known else self._opened(each) for each in self._listed]

    def _opened(self, segment: SegmentListing) -> MappedSegment:
        directory = self._scratch / segment.name
        for each in segment.files:
            self._bring(each, directory)
        return map_segment(directory, segment.key, partial(self._vectors, segment))

    def _bring(self, file: FileFacts, directory: Path) -> None:
        backbone_pool.fetch_file(
            self._server, self._cache, self._commit.repo, self._commit.id, file, directory / _name(file)
        )

    def _vectors(self, segment: SegmentListing, index: DatumInput, places: VectorPlaces, dimension: int) -> Vectors:
        """The vectors that are kept, or that are put together now. See ReadVectors."""
        to = index.path / f"together{vector_files.SUFFIX}"
        put_together = partial(self._put_together, segment, index, places, dimension)
        kept = self._cache.place(segment.together, None, to, put_together)
        if kept and not _has(to, len(places), dimension):  # damaged on this machine
            self._cache.drop([segment.together])
            to.unlink()
            self._cache.place(segment.together, None, to, put_together)
        return vector_files.read_vectors(to, dimension)

    def _put_together(
        self, segment: SegmentListing, index: DatumInput, places: VectorPlaces, dimension: int, to: Path
    ) -> None:
        directory = index.path / vector_files.DIRECTORY
        files = self._server.files(self._commit.repo, self._commit.id, f"/{segment.vectors.path}/*")
        self._bring_pieces(segment.vectors.path, files, directory)
        places.written(directory, to, dimension, "index")
        _sync(to)
        shutil.rmtree(directory)
        if not self._keeps_pieces:
            self._cache.drop(each.hash for each in files)

    def _bring_pieces(self, path: str, files: Sequence[FileFacts], to: Path) -> None:
        """Brings files of one directory with as few calls as pay: those that are kept would travel with the others in
        one call for all."""
        missing = [each for each in files if not self._cache.kept(each.hash, each.size)]
        kept = sum(each.size for each in files) - sum(each.size for each in missing)
        if len(missing) > 1 and kept <= _CALL * (len(missing) - 1):
            self._unpack(path, files, to)
        else:
            for each in files:
                self._bring(each, to)

    def _unpack(self, path: str, files: Iterable[FileFacts], to: Path) -> None:
        """Brings all files of a directory with one call."""
        waiting = {each.path: each for each in files}
        pieces = self._server.archive(self._commit.repo, self._commit.id, path)
        try:
            with closing(pieces), open_archive(ChunkReader(pieces)) as archive:
                for member in members(archive):
                    file = waiting.get(member.name.strip("/"))
                    if file is not None and member.isreg() and member.size == file.size:
                        write = partial(_write, content(archive, member))
                        self._cache.place(file.hash, file.size, to / _name(file), write)
                        del waiting[file.path]
        except tarfile.TarError as error:
            raise backbone_pool.cut_off(self._commit.repo, path) from error
        if waiting:
            raise backbone_pool.cut_off(self._commit.repo, min(waiting))


def _has(file: Path, count: int, dimension: int) -> bool:
    try:
        return len(vector_files.read_vectors(file, dimension)) == count
    except StageError:
        return False


def _write(pieces: Iterator[bytes], to: Path) -> None:
    with to.open("wb") as file:
        file.writelines(pieces)


def _sync(file: Path) -> None:
    """Waits until a file is on the disk. It got all its size before its content, so that after a power cut a shorter
    one would not tell that it is damaged."""
    with file.open("rb") as opened:
        os.fsync(opened.fileno())


def _name(file: FileFacts) -> str:
    return file.path.rpartition("/")[2]


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
