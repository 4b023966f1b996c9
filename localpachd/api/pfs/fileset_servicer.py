"""The `storage.Fileset` service of Pachyderm since 2.10: the file sets of `pfs_v2.API`, by other messages."""

import time
from collections.abc import Iterator

from localpachd.api.calls.cancellation import CallContext
from localpachd.api.pfs.chunk_links import ChunkLinks
from localpachd.api.pfs.pfs_servicer import PfsServicer
from localpachd.api.schema.schema import BytesValue, cdr_pb2, pfs_pb2, storage_pb2
from localpachd.pfs.files import temporary_filesets
from localpachd.pfs.pfs_entities import FILE_SETS
from localpachd.pfs.pfs_service import PfsService
from localpachd.sqlite import snapshot
from localpachd.storage.filesets import FileSet, TaggedFile

_BLAKE2B = 1
"""cdr.HashAlgo.BLAKE2b_256."""


class FilesetServicer:
    """`storage.Fileset`. Its file sets can be used in the calls of `pfs_v2.API`, and the other way round."""

    def __init__(self, pfs: PfsService, files: PfsServicer, links: ChunkLinks) -> None:
        self._pfs = pfs
        self._files = files
        self._links = links

    def CreateFileset(
        self, requests: Iterator[storage_pb2.CreateFilesetRequest], context: CallContext
    ) -> storage_pb2.CreateFilesetResponse:
        # Not a generator: that would end for good at a refusal, and hide that the client has gone.
        made = self._files.CreateFileSet(map(_change, requests), context)
        return storage_pb2.CreateFilesetResponse(fileset_id=made.file_set_id)

    def ReadFileset(self, request: storage_pb2.ReadFilesetRequest) -> Iterator[storage_pb2.ReadFilesetResponse]:
        for file in self._selected(request):
            if request.empty_files:
                yield storage_pb2.ReadFilesetResponse(path=file.path)
            else:
                yield from self._read(file)

    def ReadFilesetCDR(self, request: storage_pb2.ReadFilesetRequest) -> Iterator[storage_pb2.ReadFilesetCDRResponse]:
        for file in self._selected(request):
            refs = [self._ref(digest) for digest in file.content.chunks]
            yield storage_pb2.ReadFilesetCDRResponse(path=file.path, ref=cdr_pb2.Ref(concat=cdr_pb2.Concat(refs=refs)))

    def RenewFileset(self, request: storage_pb2.RenewFilesetRequest) -> None:
        asked = pfs_pb2.RenewFileSetRequest(file_set_id=request.fileset_id, ttl_seconds=request.ttl_seconds)
        self._files.RenewFileSet(asked)

    def ComposeFileset(self, request: storage_pb2.ComposeFilesetRequest) -> storage_pb2.ComposeFilesetResponse:
        asked = pfs_pb2.ComposeFileSetRequest(file_set_ids=request.fileset_ids, ttl_seconds=request.ttl_seconds)
        return storage_pb2.ComposeFilesetResponse(fileset_id=self._files.ComposeFileSet(asked).file_set_id)

    def ShardFileset(self, request: storage_pb2.ShardFilesetRequest) -> storage_pb2.ShardFilesetResponse:
        asked = pfs_pb2.ShardFileSetRequest(
            file_set_id=request.fileset_id, num_files=request.num_files, size_bytes=request.size_bytes
        )
        found = self._files.ShardFileSet(asked).shards
        return storage_pb2.ShardFilesetResponse(
            shards=[storage_pb2.PathRange(lower=each.lower, upper=each.upper) for each in found]
        )

    def _selected(self, request: storage_pb2.ReadFilesetRequest) -> Iterator[TaggedFile]:
        ranges = [(each.path_range.lower, each.path_range.upper) for each in request.filters]
        patterns = [each.path_regex for each in request.filters]
        with self._pfs.chunks.uses.one(), self._pfs.db.connection() as conn:
            with snapshot(conn):
                files = FileSet(conn, temporary_filesets.find(conn, request.fileset_id, time.time_ns()).tree)
            yield from temporary_filesets.select(files, ranges, patterns)

    def _ref(self, digest: bytes) -> cdr_pb2.Ref:
        """Where a chunk is, and its hash: a chunk is one whole piece of a file, neither compressed nor encrypted."""
        inner = cdr_pb2.Ref(http=cdr_pb2.HTTP(url=self._links.url(digest)))
        return cdr_pb2.Ref(content_hash=cdr_pb2.ContentHash(inner=inner, algo=_BLAKE2B, hash=digest))

    def _read(self, file: TaggedFile) -> Iterator[storage_pb2.ReadFilesetResponse]:
        """The messages of one file; an empty one has a message, too."""
        data = self._pfs.chunks.read(file.content, name=file.path)
        yield _piece(file.path, next(data, b""))
        for piece in data:
            yield _piece(file.path, piece)


def _piece(path: str, data: bytes) -> storage_pb2.ReadFilesetResponse:
    return storage_pb2.ReadFilesetResponse(path=path, data=BytesValue(value=data))


def _change(request: storage_pb2.CreateFilesetRequest) -> pfs_pb2.ModifyFileRequest:
    """The same change in the messages of `pfs_v2.API`; for a request without a change, one that is refused there."""
    if request.HasField("append_file"):
        added = request.append_file
        return pfs_pb2.ModifyFileRequest(add_file=pfs_pb2.AddFile(path=added.path, raw=added.data))
    if request.HasField("delete_file"):
        return pfs_pb2.ModifyFileRequest(delete_file=pfs_pb2.DeleteFile(path=request.delete_file.path))
    if request.HasField("copy_file"):
        return pfs_pb2.ModifyFileRequest(copy_file=_copy(request.copy_file))
    return pfs_pb2.ModifyFileRequest()


def _copy(message: storage_pb2.CopyFile) -> pfs_pb2.CopyFile:
    held = pfs_pb2.Commit(repo=pfs_pb2.Repo(name=FILE_SETS), id=message.fileset_id)
    source = message.src or "/"
    return pfs_pb2.CopyFile(dst=message.dst or source, src=pfs_pb2.File(commit=held, path=source))
