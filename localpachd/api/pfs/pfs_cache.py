"""The calls about values that clients cache on the server."""

import grpc

from localpachd.api.schema.schema import Empty, pfs_pb2
from localpachd.pfs.files import cache
from localpachd.pfs.pfs_service import PfsService


class CacheCalls:
    """PutCache, GetCache and ClearCache of `pfs_v2.API`."""

    _pfs: PfsService

    def PutCache(self, request: pfs_pb2.PutCacheRequest, context: grpc.ServicerContext) -> Empty:
        value = request.value.SerializeToString()
        self._pfs.transact(lambda txn: cache.put(txn, request.key, value, [*request.file_set_ids], request.tag))
        return Empty()

    def GetCache(self, request: pfs_pb2.GetCacheRequest, context: grpc.ServicerContext) -> pfs_pb2.GetCacheResponse:
        reply = pfs_pb2.GetCacheResponse()
        reply.value.ParseFromString(self._pfs.transact(lambda txn: cache.get(txn, request.key)))
        return reply

    def ClearCache(self, request: pfs_pb2.ClearCacheRequest, context: grpc.ServicerContext) -> Empty:
        self._pfs.transact(lambda txn: cache.clear(txn, request.tag_prefix), frees=True)
        return Empty()
