"""The calls about file sets that clients hold by id; `pfs_modify` has the call that creates one from a stream."""

import time
from collections.abc import Callable

import grpc

from localpachd.api.calls import cancellation
from localpachd.api.messages import pfs_messages as messages
from localpachd.api.schema.schema import Empty, pfs_pb2
from localpachd.pfs import commits, contents
from localpachd.pfs.files import temporary_filesets
from localpachd.pfs.files.temporary_filesets import FileSetLayers
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.transaction import Transaction
from localpachd.storage.filesets import FileSet

_DIFF = 1
"""GetFileSetRequest.FileSetType since 2.11: only the files written in the commit; 0 means all its files."""
_SHARD_FILES = 1_000_000
_SHARD_BYTES = 1_000_000_000


class FileSetCalls:
    """File sets of `pfs_v2.API`."""

    _pfs: PfsService

    def GetFileSet(
        self, request: pfs_pb2.GetFileSetRequest, context: grpc.ServicerContext
    ) -> pfs_pb2.CreateFileSetResponse:
        commit = messages.to_commit(request.commit)

        def step(txn: Transaction) -> FileSetLayers:
            info = commits.resolve(txn.conn, commit)
            found = contents.diff_layers if request.type == _DIFF else contents.layers
            return FileSetLayers(found(txn.conn, info))

        return self._kept(step, temporary_filesets.DEFAULT_TTL)

    def ComposeFileSet(
        self, request: pfs_pb2.ComposeFileSetRequest, context: grpc.ServicerContext
    ) -> pfs_pb2.CreateFileSetResponse:
        def step(txn: Transaction) -> FileSetLayers:
            parts = [temporary_filesets.find(txn.conn, each, txn.now) for each in request.file_set_ids]
            composed = temporary_filesets.compose_all(txn.conn, self._pfs.chunks, parts)
            self._pfs.chunks.flush()
            return composed

        return self._kept(step, request.ttl_seconds * temporary_filesets.SECOND or temporary_filesets.DEFAULT_TTL)

    def AddFileSet(self, request: pfs_pb2.AddFileSetRequest, context: grpc.ServicerContext) -> Empty:
        commit = messages.to_commit(request.commit)

        def step(txn: Transaction) -> None:
            temporary_filesets.add_to_commit(txn, self._pfs.chunks, commit, request.file_set_id)
            self._pfs.chunks.flush()

        with self._pfs.chunks.uses.one():
            self._pfs.patiently(lambda: self._pfs.transact(step), cancellation.watch_later(context, self._pfs.changes))
        return Empty()

    def RenewFileSet(self, request: pfs_pb2.RenewFileSetRequest, context: grpc.ServicerContext) -> Empty:
        ttl = request.ttl_seconds * temporary_filesets.SECOND
        self._pfs.transact(lambda txn: temporary_filesets.renew(txn, request.file_set_id, ttl))
        return Empty()

    def ShardFileSet(
        self, request: pfs_pb2.ShardFileSetRequest, context: grpc.ServicerContext
    ) -> pfs_pb2.ShardFileSetResponse:
        limits = (
            request.num_files if request.num_files > 0 else _SHARD_FILES,
            request.size_bytes if request.size_bytes > 0 else _SHARD_BYTES,
        )
        with self._pfs.db.read() as conn:
            files = FileSet(conn, temporary_filesets.find(conn, request.file_set_id, time.time_ns()).tree)
            ranges = [
                pfs_pb2.PathRange(lower=lower, upper=upper)
                for lower, upper in temporary_filesets.shards(files, *limits)
            ]
        return pfs_pb2.ShardFileSetResponse(shards=ranges)

    def _kept(self, step: Callable[[Transaction], FileSetLayers], ttl: int) -> pfs_pb2.CreateFileSetResponse:
        """Keeps the file set that a step returns; replies with its id."""
        with self._pfs.chunks.uses.one():
            made = self._pfs.transact(lambda txn: temporary_filesets.keep(txn, step(txn), ttl))
        return pfs_pb2.CreateFileSetResponse(file_set_id=made)
