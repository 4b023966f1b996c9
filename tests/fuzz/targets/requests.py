"""Requests of the API as bytes from the wire: decoded and handled in this process, by a server that does not run."""

import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, cast

import grpc
from google.protobuf.message import DecodeError

from localpachd.api.api_services import register
from localpachd.api.doors.status import StatusInterceptor
from localpachd.api.pachyderm_version import V2_7
from localpachd.api.pfs.chunk_links import ChunkLinks
from localpachd.api.pps.loopback_servers import GrpcBatchServer, GrpcSidecars
from localpachd.api.schema.schema import SERVICES, BytesValue, pfs_pb2, pps_pb2
from localpachd.api.server.log_levels import LogLevels
from localpachd.database import Database
from localpachd.diagnosis.server_facts import ServerFacts
from localpachd.disk import Disk
from localpachd.pfs.changes import ChangeFeed
from localpachd.pfs.pfs_service import PfsService
from localpachd.pps import jobs
from localpachd.pps.pps_service import PpsService
from localpachd.storage.chunk_store import ChunkStore
from localpachd.worker.gpu_pool import GpuPool
from localpachd.worker.local_runner import LocalRunner
from localpachd.worker.machine import namespaces
from localpachd.worker.machine.machine_workplaces import MachineBackend
from localpachd.worker.secret_store import SecretStore
from localpachd.worker.workplace import WorkerStores
from tests.fuzz.calls import is_foreign
from tests.fuzz.messages import Messages
from tests.fuzz.scratch import scratch
from tests.fuzz.target import Target

_LEFT_OUT = ("debug_v2.Debug", "pachyderm.worker.Worker")
_SLOW = ("pps_v2.API/RenderTemplate",)
"""Calls that start a process."""
_LIFE = 1000
"""Requests after which the server is replaced by one without what they have made."""
_PATIENCE = 0.02
"""Seconds after which a call that waits ends."""
_REPLIES = 50
_MOST_PARTS = 8

_SPEC = """{"pipeline": {"name": "again"}, "transform": {"cmd": ["true"]}, "podSpec": "{}",
"input": {"pfs": {"repo": "images", "glob": "/(*)", "joinOn": "$1"}}}"""
_SECRET = b"""{"kind": "Secret", "metadata": {"name": "s", "labels": {"suite": "pachyderm"}},
"data": {"a": "YQ=="}, "stringData": {"b": "text"}}"""

Handler = Any
"""gRPC's handler of a call."""


class _Ended(Exception):
    """The end of a call with a status, as `abort` ends it."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(f"{code.name}: {details}")
        self.code, self.details = code, details


class _Context:
    """What a handler knows of its call. Its client goes when the handler begins to wait."""

    def __init__(self) -> None:
        self._ended = False
        self._timers: list[threading.Timer] = []

    def is_active(self) -> bool:
        return not self._ended

    def add_callback(self, callback: Callable[[], None]) -> bool:
        def end() -> None:
            self._ended = True
            callback()

        timer = threading.Timer(_PATIENCE, end)
        timer.daemon = True
        timer.start()
        self._timers.append(timer)
        return True

    def invocation_metadata(self) -> Sequence[tuple[str, str]]:
        return ()

    def abort(self, code: grpc.StatusCode, details: str) -> None:
        details.encode()  # gRPC sends it
        raise _Ended(code, details)

    def set_trailing_metadata(self, metadata: object) -> None:
        pass

    def finish(self) -> None:
        for each in self._timers:
            each.cancel()


class _Handlers:
    """Keeps the handlers that are added to it, as a gRPC server does. Calls that wait end where they would begin to."""

    def __init__(self) -> None:
        self._generic: list[grpc.GenericRpcHandler] = []

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        self._generic += handlers

    def add_registered_method_handlers(self, service: str, handlers: object) -> None:
        pass

    def behaviour(self, method: str, steps: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        def replies(request: Any, context: Any) -> Iterator[Any]:
            for step in steps(request, context):
                if isinstance(step, ChangeFeed):
                    return
                yield step

        return replies

    def of(self, method: str) -> Handler | None:
        details: Any = _Details(f"/{method}")
        found = next((found for each in self._generic if (found := each.service(details)) is not None), None)
        return found and StatusInterceptor().intercept_service(lambda _: found, details)


@dataclass(frozen=True)
class _Details:
    method: str
    invocation_metadata: Sequence[tuple[str, str]] = ()


class _Server:
    """Every part of a localpachd that answers requests, on a new root directory. Pipelines do not run."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        disk = Disk(root)
        self._db, self._chunks = Database(root / "db.sqlite", disk), ChunkStore(root / "chunks", disk)
        pfs = PfsService(self._db, self._chunks, jobs)
        secrets, pool = SecretStore(root / "secrets"), GpuPool()
        machine = MachineBackend(WorkerStores(self._db, self._chunks, secrets), root / "scratch", _confinement())
        runner = LocalRunner(root / "scratch", pool, GrpcBatchServer(), machine, disk)
        pps = PpsService(pfs, runner, pool, 0, secrets, GrpcSidecars(pfs, lambda server, spout: None))
        handlers = _Handlers()
        links = ChunkLinks(self._chunks, local=False)
        facts, levels, server = ServerFacts(root, {}), LogLevels(), cast(Any, handlers)
        register(server, pfs, pps, secrets, facts, levels, server, False, V2_7, links)
        self.handlers = {method: handlers.of(method) for method in _methods()}
        self._runner, self.requests = runner, 0

    def close(self) -> None:
        self._runner.close()
        self._chunks.close()
        self._db.close()


@cache
def _confinement() -> Any:
    return namespaces.detect(scratch())


@cache
def _methods() -> Sequence[str]:
    return [
        f"{name}/{call.name}"
        for name, service in sorted(SERVICES.items())
        if name not in _LEFT_OUT
        for call in service.methods
        if f"{name}/{call.name}" not in _SLOW
    ]


class _Running:
    """The server of this process, replaced now and then."""

    def __init__(self) -> None:
        self._server: _Server | None = None
        self._number = 0

    def get(self) -> _Server:
        if self._server is None or self._server.requests >= _LIFE:
            if self._server is not None:
                self._server.close()
            self._number += 1
            self._server = _Server(scratch() / f"root-{self._number}")
            for each in _furniture():
                _handle(self._server, each)
        self._server.requests += 1
        return self._server


_RUNNING = _Running()


def _run(data: bytes) -> None:
    _handle(_RUNNING.get(), data)


def _handle(server: _Server, data: bytes) -> None:
    """The first byte chooses the method; the parts of a stream have their lengths before them."""
    methods = _methods()
    name = methods[data[0] % len(methods)] if data else methods[0]
    handler = server.handlers[name]
    if handler is None:
        return
    try:
        requests = [handler.request_deserializer(each) for each in _parts(data[1:], handler.request_streaming)]
    except (DecodeError, UnicodeDecodeError, RecursionError):  # gRPC answers that it cannot decode the request
        return
    context = _Context()
    try:
        _call(handler, requests, context)
    except _Ended as end:
        if end.code is grpc.StatusCode.INTERNAL or is_foreign(end.details):
            raise AssertionError(f"{name}: {end}\n{requests}") from end
    finally:
        context.finish()


def _call(handler: Handler, requests: Sequence[Any], context: _Context) -> None:
    given = iter(requests) if handler.request_streaming else requests[0]
    behaviour = handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
    answer = behaviour(given, context)
    for reply in islice(answer, _REPLIES) if handler.response_streaming else (answer,):
        handler.response_serializer(reply)
    if handler.response_streaming and hasattr(answer, "close"):
        answer.close()


def _parts(data: bytes, streams: bool) -> Iterator[bytes]:
    if not streams:
        yield data
        return
    at = number = 0
    while at + 2 <= len(data) and number < _MOST_PARTS:
        (length,) = struct.unpack_from(">H", data, at)
        yield data[at + 2 : at + 2 + length]
        at, number = at + 2 + length, number + 1


def _packed(method: str, *requests: Any) -> bytes:
    streams = next(
        call.client_streaming
        for name, service in SERVICES.items()
        for call in service.methods
        if f"{name}/{call.name}" == method
    )
    parts = [each.SerializeToString() for each in requests]
    begin = bytes((_methods().index(method),))
    return begin + (b"".join(struct.pack(">H", len(each)) + each for each in parts) if streams else parts[0])


@cache
def _furniture() -> Sequence[bytes]:
    """A repo with files, and a pipeline that reads it, with the names that other seeds use."""
    repo = pfs_pb2.Repo(name="images", type="user", project=pfs_pb2.Project(name="default"))
    commit = pfs_pb2.Commit(repo=repo, branch=pfs_pb2.Branch(repo=repo, name="master"))
    read = pps_pb2.PFSInput(repo="images", project="default", branch="master", glob="/*", name="images")
    pipeline = pps_pb2.Pipeline(name="copy", project=pfs_pb2.Project(name="default"))
    made = pps_pb2.CreatePipelineRequest(
        pipeline=pipeline, transform=pps_pb2.Transform(cmd=["true"]), input=pps_pb2.Input(pfs=read)
    )
    put = [
        pfs_pb2.ModifyFileRequest(set_commit=commit),
        *(
            pfs_pb2.ModifyFileRequest(add_file=pfs_pb2.AddFile(path=path, raw=BytesValue(value=b"text")))
            for path in ("/a", "/b/c")
        ),
    ]
    file = pfs_pb2.File(commit=commit, path="/")
    return (
        _packed("pfs_v2.API/CreateRepo", pfs_pb2.CreateRepoRequest(repo=repo)),
        _packed("pfs_v2.API/ModifyFile", *put),
        _packed("pps_v2.API/CreatePipeline", made),
        _packed("pfs_v2.API/ListFile", pfs_pb2.ListFileRequest(file=file)),
        _packed("pfs_v2.API/GlobFile", pfs_pb2.GlobFileRequest(commit=commit, pattern="/**")),
        _packed("pfs_v2.API/GetFileTAR", pfs_pb2.GetFileRequest(file=file)),
        _packed("pfs_v2.API/InspectCommit", pfs_pb2.InspectCommitRequest(commit=commit)),
        _packed("pps_v2.API/ListJob", pps_pb2.ListJobRequest(pipeline=pipeline)),
        _packed("pps_v2.API/CreatePipelineV2", pps_pb2.CreatePipelineV2Request(create_pipeline_request_json=_SPEC)),
        _packed("pps_v2.API/CreateSecret", pps_pb2.CreateSecretRequest(file=_SECRET)),
        _packed("pps_v2.API/InspectPipeline", pps_pb2.InspectPipelineRequest(pipeline=pipeline)),
    )


def _seeds() -> Iterator[bytes]:
    yield from _furniture()
    messages = Messages(7)
    for method in _methods():
        service, _, name = method.partition("/")
        call = SERVICES[service].methods_by_name[name]
        for density in range(3):
            made = [messages.request(method, call.input_type) for _ in range(1 + call.client_streaming * density)]
            packed = _packed(method, *made)
            if len(packed) < _LONGEST:
                yield packed


_LONGEST = 2500
_WORDS = (
    b"\x0a\x06images",
    b"default",
    b"master",
    b"user",
    b"copy",
    b"/a",
    b"master^",
    b"\x12",
    b"\x1a",
    b"\x0a",
    b"\\ud800",
    b"[" * 1200,
)

TARGETS = (Target("requests", _run, _seeds, _WORDS, _LONGEST),)
