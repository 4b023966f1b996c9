"""The calls that check pfs and its storage for inconsistencies."""

from collections.abc import Iterator
from itertools import chain

import grpc

from localpachd.api.calls.handlers import lists
from localpachd.api.messages import pfs_messages as messages
from localpachd.api.schema.schema import pfs_pb2, task_pb2
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.upkeep import fsck
from localpachd.storage.big_chunks import missing


class CheckCalls:
    """Fsck, CheckStorage and ListTask of `pfs_v2.API`."""

    _pfs: PfsService

    @lists
    def Fsck(self, request: pfs_pb2.FsckRequest, context: grpc.ServicerContext) -> Iterator[pfs_pb2.FsckResponse]:
        if request.fix:
            self._pfs.transact(fsck.fix)
        kind = request.WhichOneof("zombie_check")
        # No layer that this snapshot has is swept meanwhile.
        with self._pfs.chunks.uses.one(), self._pfs.db.read() as conn:
            found = fsck.check(conn)
            if kind == "zombie_target":
                found = chain(found, fsck.zombies(conn, messages.to_commit(request.zombie_target)))
            elif kind == "zombie_all" and request.zombie_all:
                found = chain(found, (text for each in fsck.outputs(conn) for text in fsck.zombies(conn, each)))
            for text in found:
                yield pfs_pb2.FsckResponse(error=text)
            there = set(self._pfs.chunks.hashes())  # after the snapshot was taken: all that it refers to
            for text in fsck.unreadable(conn, lambda digest: "" if digest in there else str(missing(digest))):
                yield pfs_pb2.FsckResponse(error=text)

    def CheckStorage(
        self, request: pfs_pb2.CheckStorageRequest, context: grpc.ServicerContext
    ) -> pfs_pb2.CheckStorageResponse:
        count = self._pfs.chunks.check(request.chunk_begin, request.chunk_end, request.read_chunk_data)
        return pfs_pb2.CheckStorageResponse(chunk_object_count=count)

    def ListTask(self, request: task_pb2.ListTaskRequest, context: grpc.ServicerContext) -> Iterator[task_pb2.TaskInfo]:
        return iter(())  # storage queues no tasks
