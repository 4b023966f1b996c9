"""Every call with an empty request: its answer is never an internal error."""

from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from localpachd.api.schema.schema import SERVICES, message_class
from tests.servers import StartPachd

_NOT_OF_PACHD = ("pachyderm.worker.Worker",)
_ENDLESS = 3.0
"""Seconds after which a call that waits is cancelled."""


def _calls() -> list[Any]:
    return [
        pytest.param(service, call, id=f"{name}/{call.name}")
        for name, service in sorted(SERVICES.items())
        for call in service.methods
        if name not in _NOT_OF_PACHD
    ]


@pytest.fixture(scope="module")
def channel(start_shared_pachd: StartPachd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[grpc.Channel]:
    server = start_shared_pachd(tmp_path_factory.mktemp("empty") / "root")
    with grpc.insecure_channel(server.address.removeprefix("grpc://")) as channel:
        yield channel


@pytest.mark.parametrize(("service", "call"), _calls())
def test_an_empty_request_is_answered(channel: grpc.Channel, service: Any, call: Any) -> None:
    kinds: dict[tuple[bool, bool], Callable[..., Callable[..., Any]]] = {
        (False, False): channel.unary_unary,
        (False, True): channel.unary_stream,
        (True, False): channel.stream_unary,
        (True, True): channel.stream_stream,
    }
    request, reply = message_class(call.input_type), message_class(call.output_type)
    made = kinds[call.client_streaming, call.server_streaming](
        f"/{service.full_name}/{call.name}",
        request_serializer=request.SerializeToString,
        response_deserializer=reply.FromString,
    )
    try:
        answer = made(iter([request()]) if call.client_streaming else request(), timeout=_ENDLESS)
        if call.server_streaming:
            list(answer)
    except grpc.RpcError as error:
        assert error.code() is not grpc.StatusCode.INTERNAL, error.details()
        details = error.details()
        assert details
        assert len(details.rstrip().splitlines()) == 1
