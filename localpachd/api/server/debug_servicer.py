"""The `debug_v2.Debug` service: dumps, profiles and the program for reports of bugs, the level of the log."""

import socket
import time
from collections.abc import Iterator
from typing import Any

import grpc
from google.protobuf.struct_pb2 import Struct

from localpachd.api.calls.cancellation import CallContext
from localpachd.api.calls.handlers import method_handler
from localpachd.api.messages import pps_messages as messages
from localpachd.api.messages.times import seconds
from localpachd.api.schema.schema import BytesValue, Empty, debug_pb2, pps_pb2
from localpachd.api.server.debug_dump import APP, POD, DebugDump, DumpSources
from localpachd.api.server.log_levels import LogLevels
from localpachd.diagnosis import profiles, server_facts
from localpachd.diagnosis.tar_archive import TarArchive, packed
from localpachd.errors import Unimplemented
from localpachd.pps.datum_rerun import RerunResult
from localpachd.pps.pps_service import PpsService
from localpachd.worker.tasks import LogLine

_CHUNK = 1 << 18
_LONGEST = 25 * 60.0
"""Seconds that a dump takes at most, unless the request says otherwise."""


class DebugServicer:
    """`debug_v2.Debug`. Workers are not asked: their processes are the user's code."""

    def __init__(self, sources: DumpSources, levels: LogLevels) -> None:
        self._sources = sources
        self._levels = levels

    def GetDumpV2Template(self, request: debug_pb2.GetDumpV2TemplateRequest) -> debug_pb2.GetDumpV2TemplateResponse:
        pipelines = [
            debug_pb2.Pipeline(project=each.pipeline.project, name=each.pipeline.name)
            for each in self._sources.pipelines.list_pipelines()
        ]
        apps = [debug_pb2.App(name=APP)]
        apps += [debug_pb2.App(name=f"{each.project}/{each.name}", pipeline=each) for each in pipelines]
        taken = [debug_pb2.Profile(name="heap"), debug_pb2.Profile(name="goroutine")]
        profiled = debug_pb2.App(name=APP, profile_args=debug_pb2.ProfileArgs(profiles=taken))
        whole = debug_pb2.DumpV2Request(
            system=debug_pb2.System(database=True, version=True, describes=apps, logs=apps, profiles=[profiled]),
            pipelines=pipelines,
            input_repos=True,
            defaults=debug_pb2.DumpV2Request.Defaults(cluster_defaults=True),
        )
        return debug_pb2.GetDumpV2TemplateResponse(request=whole)

    def DumpV2(self, request: debug_pb2.DumpV2Request, context: CallContext) -> Iterator[debug_pb2.DumpChunk]:
        archive = TarArchive()
        end = time.monotonic() + (seconds(request.timeout) or _LONGEST)
        dump = DebugDump(self._sources, request, context, archive)
        for task, done, total in dump.run(lambda: context.is_active() and time.monotonic() < end):
            yield debug_pb2.DumpChunk(progress=debug_pb2.DumpProgress(task=task, progress=done, total=total))
            yield from map(_content, _pieces(archive.take(_CHUNK)))
        archive.close()
        yield from map(_content, _pieces(archive.take()))

    def Dump(self, request: debug_pb2.DumpRequest) -> Iterator[BytesValue]:
        raise Unimplemented("Dump gRPC is deprecated in favor of DumpV2")  # as in Pachyderm 2.7

    def Profile(self, request: debug_pb2.ProfileRequest, context: CallContext) -> Iterator[BytesValue]:
        asked = request.profile
        duration = seconds(asked.duration) or profiles.DEFAULT_SECONDS
        text = profiles.profile(asked.name, duration, context.is_active)
        yield from map(_bytes, _pieces(packed([(asked.name, text)])))

    def Binary(self, request: debug_pb2.BinaryRequest) -> Iterator[BytesValue]:
        yield from map(_bytes, _pieces(packed(server_facts.program_files())))

    def SetLogLevel(self, request: debug_pb2.SetLogLevelRequest) -> debug_pb2.SetLogLevelResponse:
        self._levels.set(request)
        return debug_pb2.SetLogLevelResponse(affected_pods=[POD])

    def Trace(self, request: debug_pb2.TraceRequest) -> Iterator[debug_pb2.TraceChunk]:
        # pachctl 2.11 takes a refusal for an empty part of the trace and keeps reading for ever.
        yield debug_pb2.TraceChunk(content=BytesValue(value=b"localpachd is not a Go program and has no trace\n"))


def _pieces(data: bytes) -> Iterator[bytes]:
    """The bytes in pieces that fit into a message."""
    for start in range(0, len(data), _CHUNK):
        yield data[start : start + _CHUNK]


def _bytes(piece: bytes) -> BytesValue:
    return BytesValue(value=piece)


def _content(piece: bytes) -> debug_pb2.DumpChunk:
    return debug_pb2.DumpChunk(content=debug_pb2.DumpContent(content=piece))


def add_own_service(server: grpc.Server, pps: PpsService) -> None:
    """Adds localpachd's own service to a server, `localpachd.Debug`: calls that Pachyderm lacks, in messages that every
    client has.

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
