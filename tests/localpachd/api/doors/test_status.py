"""Errors over a real connection: their codes, their texts, and calls that are not served."""

import errno
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from google.protobuf.empty_pb2 import Empty
from python_pachyderm.proto.v2.pps import pps_pb2, pps_pb2_grpc

from localpachd import errors
from localpachd.api.doors.status import StatusInterceptor


class Failing(pps_pb2_grpc.APIServicer):  # type: ignore[misc]  # python-pachyderm has no types
    """Raises the error that the pipeline's name selects."""

    def InspectPipeline(
        self, request: pps_pb2.InspectPipelineRequest, context: grpc.ServicerContext
    ) -> pps_pb2.PipelineInfo:
        raise KINDS[request.pipeline.name]

    def ListPipeline(
        self, request: pps_pb2.ListPipelineRequest, context: grpc.ServicerContext
    ) -> Iterator[pps_pb2.PipelineInfo]:
        yield pps_pb2.PipelineInfo(version=1)
        raise KINDS[request.pipeline.name]


KINDS = {
    "plain": errors.PachError("plain text"),
    "argument": errors.InvalidArgument("bad argument"),
    "missing": errors.NotFound("not found"),
    "exists": errors.AlreadyExists("exists"),
    "state": errors.FailedPrecondition("not now"),
    "later": errors.Unavailable("not yet"),
    "never": errors.Unimplemented("never"),
    "full": OSError(errno.ENOSPC, "No space left on device"),
    "files": OSError(errno.EMFILE, "Too many open files", "/root/chunks/ab"),
    "rights": PermissionError(errno.EPERM, "Operation not permitted"),
    "bug": ZeroDivisionError("division by zero\nwith a second line"),
}


@pytest.fixture(scope="module")
def channel() -> Iterator[grpc.Channel]:
    server = grpc.server(ThreadPoolExecutor(4), interceptors=[StatusInterceptor()])
    pps_pb2_grpc.add_APIServicer_to_server(Failing(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel
    server.stop(None)


def refusal(call: Callable[..., object], *arguments: object) -> tuple[grpc.StatusCode, str | None]:
    with pytest.raises(grpc.RpcError) as refused:
        call(*arguments)
    return refused.value.code(), refused.value.details()


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("plain", grpc.StatusCode.UNKNOWN),
        ("argument", grpc.StatusCode.INVALID_ARGUMENT),
        ("missing", grpc.StatusCode.NOT_FOUND),
        ("exists", grpc.StatusCode.ALREADY_EXISTS),
        ("state", grpc.StatusCode.FAILED_PRECONDITION),
        ("later", grpc.StatusCode.UNAVAILABLE),
        ("never", grpc.StatusCode.UNIMPLEMENTED),
    ],
)
def test_each_kind_of_error_has_its_code_and_keeps_its_text(
    channel: grpc.Channel, kind: str, code: grpc.StatusCode
) -> None:
    stub = pps_pb2_grpc.APIStub(channel)
    named = pps_pb2.Pipeline(name=kind)
    expected = (code, str(KINDS[kind]))
    assert refusal(stub.InspectPipeline, pps_pb2.InspectPipelineRequest(pipeline=named)) == expected
    stream = stub.ListPipeline(pps_pb2.ListPipelineRequest(pipeline=named))
    assert next(stream).version == 1
    assert refusal(next, stream) == expected


@pytest.mark.parametrize(
    ("kind", "code", "text"),
    [
        ("full", grpc.StatusCode.RESOURCE_EXHAUSTED, "no space left on the server's disk: free some"),
        (
            "files",
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "the server has too many open files: try again later, or raise its limit (ulimit -n) (/root/chunks/ab)",
        ),
        (
            "rights",
            grpc.StatusCode.FAILED_PRECONDITION,
            "the server may not change one of its files: give it the right, or see lsattr",
        ),
    ],
)
def test_failures_of_the_machine_have_codes_and_words(
    channel: grpc.Channel, kind: str, code: grpc.StatusCode, text: str
) -> None:
    request = pps_pb2.InspectPipelineRequest(pipeline=pps_pb2.Pipeline(name=kind))
    assert refusal(pps_pb2_grpc.APIStub(channel).InspectPipeline, request) == (code, text)


def test_an_unforeseen_error_is_one_line_without_a_traceback(channel: grpc.Channel) -> None:
    request = pps_pb2.InspectPipelineRequest(pipeline=pps_pb2.Pipeline(name="bug"))
    assert refusal(pps_pb2_grpc.APIStub(channel).InspectPipeline, request) == (
        grpc.StatusCode.INTERNAL,
        "internal error in pps_v2.API/InspectPipeline: ZeroDivisionError: division by zero "
        "(the server's log has the details)",
    )


@pytest.mark.parametrize(
    ("method", "text"),
    [
        ("pps_v2.API/RunCron", "localpachd does not serve pps_v2.API/RunCron"),
        ("pps_v2.API/Invented", "localpachd does not serve pps_v2.API/Invented"),
        ("proxy.API/Listen", "localpachd does not serve proxy.API/Listen"),
        ("auth_v2.API/WhoAmI", "the auth service is not activated"),
        ("identity_v2.API/DeleteAll", "the auth service is not activated"),
    ],
)
def test_unserved_calls_are_refused_by_name(channel: grpc.Channel, method: str, text: str) -> None:
    call: grpc.UnaryUnaryMultiCallable[Empty, bytes] = channel.unary_unary(
        f"/{method}", request_serializer=Empty.SerializeToString
    )
    assert refusal(call, Empty()) == (grpc.StatusCode.UNIMPLEMENTED, text)


def test_old_clients_are_told_to_upgrade(channel: grpc.Channel) -> None:
    call: grpc.UnaryUnaryMultiCallable[Empty, bytes] = channel.unary_unary(
        "/pfs.API/ListRepo", request_serializer=Empty.SerializeToString
    )
    code, text = refusal(call, Empty())
    assert code is grpc.StatusCode.UNIMPLEMENTED
    assert text is not None and text.startswith(
        "this server is running pachyderm 2.x, but your client appears to be an older version"
    )
