"""The call that copies a commit to object storage."""

import grpc

from localpachd.api.messages import pfs_messages as messages
from localpachd.api.schema.schema import pfs_pb2
from localpachd.errors import InvalidArgument, Unimplemented
from localpachd.pfs.files import egress
from localpachd.pfs.pfs_service import PfsService


class EgressCalls:
    """Egress of `pfs_v2.API`."""

    _pfs: PfsService

    def Egress(self, request: pfs_pb2.EgressRequest, context: grpc.ServicerContext) -> pfs_pb2.EgressResponse:
        target = request.WhichOneof("target")
        if target == "sql_database":
            raise Unimplemented("localpachd does not serve egress to SQL databases")
        if target is None:
            raise InvalidArgument("egress must have a target")
        size = egress.copy(self._pfs, messages.to_commit(request.commit), request.object_storage.url)
        return pfs_pb2.EgressResponse(object_storage=pfs_pb2.EgressResponse.ObjectStorageResult(bytes_written=size))
