"""localpachd's own service, `localpachd.Debug`: calls that Pachyderm lacks, in messages that every client has."""

import socket
from collections.abc import Iterator
from typing import Any

import grpc
from google.protobuf.struct_pb2 import Struct

from localpachd.api.calls.cancellation import CallContext
from localpachd.api.calls.handlers import method_handler
from localpachd.api.messages import pps_messages as messages
from localpachd.api.schema.schema import Empty, pps_pb2
from localpachd.pps.datum_rerun import RerunResult
from localpachd.pps.pps_service import PpsService
from localpachd.worker.tasks import LogLine


def add_service(server: grpc.Server, pps: PpsService) -> None:
    """Adds the service to a server.

    RunDatum takes an InspectDatumRequest and returns a stream of Structs: {"line": ..., "user": ...} for each line of
    the log, and at the end {"state": ..., "reason": ..., "file_set": ..., "directory": ...}. ListGpus takes an Empty
    and returns a Struct: {"machine": ..., "devices": [{"name": ..., "holder": ...}]}; a holder is a pipeline or "".
    """

    def run_datum(request: pps_pb2.InspectDatumRequest, context: CallContext) -> Iterator[Struct]:
        rerun = pps.rerun_datum(messages.to_job(request.datum.job), request.datum.id)
        context.add_callback(rerun.cancel)
        return map(_reply, rerun.events())

    def list_gpus(request: Empty, context: CallContext) -> Struct:
        holders = pps.gpus.holders()
        reply = Struct()
        devices = [{"name": each, "holder": holders.get(each, "")} for each in pps.gpus.devices]
        reply.update({"machine": socket.gethostname(), "devices": devices})
        return reply

    encode = Struct.SerializeToString
    calls: dict[str, grpc.RpcMethodHandler[Any, Struct]] = {
        "RunDatum": method_handler(run_datum, (False, True), pps_pb2.InspectDatumRequest.FromString, encode),
        "ListGpus": method_handler(list_gpus, (False, False), Empty.FromString, encode),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("localpachd.Debug", calls),))


def _reply(event: LogLine | RerunResult) -> Struct:
    reply = Struct()
    if isinstance(event, LogLine):
        reply.update({"line": event.message, "user": event.user})
    else:
        result = event.result
        reply.update({"state": result.state, "reason": result.reason})
        reply.update({"file_set": event.files, "directory": event.directory})
    return reply
