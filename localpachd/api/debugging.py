"""localpachd's own service, `localpachd.Debug`: what no client of Pachyderm's knows, in messages that every one has."""

from collections.abc import Iterator
from typing import Any

import grpc
from google.protobuf.struct_pb2 import Struct

from localpachd.api import pps_messages as messages
from localpachd.api.schema import pps_pb2
from localpachd.api.serving import handler
from localpachd.pps.rehearsal import Outcome
from localpachd.pps.service import Pps
from localpachd.worker.tasks import LogLine


def serve(server: grpc.Server, pps: Pps) -> None:
    """Adds the service to a server. Its one call, RunDatum, takes an InspectDatumRequest and answers with a stream of
    Structs: {"line": ..., "user": ...} for each line said, and at the end {"state": ..., "reason": ..., "file_set":
    ..., "directory": ...}."""

    def run_datum(request: Any, context: Any) -> Iterator[Any]:
        rehearsal = pps.rehearse(messages.to_job(request.datum.job), request.datum.id)
        context.add_callback(rehearsal.cancel)
        return map(_reply, rehearsal.events())

    decode = pps_pb2.InspectDatumRequest.FromString
    call = handler(run_datum, (False, True), decode, Struct.SerializeToString)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("localpachd.Debug", {"RunDatum": call}),))


def _reply(event: LogLine | Outcome) -> Any:
    reply = Struct()
    if isinstance(event, LogLine):
        reply.update({"line": event.message, "user": event.user})
    else:
        result = event.result
        reply.update({"state": result.state, "reason": result.reason})
        reply.update({"file_set": event.files, "directory": event.directory})
    return reply
