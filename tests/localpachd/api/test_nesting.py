"""Deeply nested requests. The pinned protobuf (3.20, in pure Python) has no limit of depth when it decodes a message
(CVE-2025-4565) and loses count of it within nested Any values of JSON (CVE-2026-0994): each request here would exhaust
Python's stack. The server refuses it and goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from python_pachyderm.proto.v2.pps import pps_pb2

from localpachd.api.calls.grpc_limits import MAX_MESSAGE
from localpachd.api.schema import schema
from tests.servers import Localpachd, StartPachd

DEEP = 100_000


@pytest.fixture(scope="module")
def server(start_shared_pachd: StartPachd, tmp_path_factory: pytest.TempPathFactory) -> Localpachd:
    return start_shared_pachd(tmp_path_factory.mktemp("nested") / "root")


@pytest.fixture
def channel(server: Localpachd) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(
        server.address.removeprefix("grpc://"), options=[("grpc.max_send_message_length", -1)]
    ) as made:
        yield made
    assert server.client().get_remote_version().major == 2


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def nested(numbers: tuple[int, ...], depth: int) -> bytes:
    """The encoding of messages in messages: `numbers` are the fields that lead from one to the next of its kind."""
    tails: list[bytes] = []
    length = 0
    for _ in range(depth):
        for number in reversed(numbers):
            head = varint(number << 3 | 2) + varint(length)
            tails.append(head)
            length += len(head)
    return b"".join(reversed(tails))


def call(channel: grpc.Channel, method: str, request: bytes) -> bytes:
    made: Any = channel.unary_unary(method)
    return bytes(made(request, timeout=60))


def refused(channel: grpc.Channel, method: str, request: bytes) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as info:
        call(channel, method, request)
    return info.value.code(), str(info.value.details())


@pytest.mark.parametrize("kind", ["message", "unknown group"])
def test_a_message_that_is_nested_deeply(channel: grpc.Channel, kind: str) -> None:
    crossed = pps_pb2.Input.DESCRIPTOR.fields_by_name["cross"].number
    of_request = pps_pb2.CreatePipelineRequest.DESCRIPTOR.fields_by_name["input"].number
    if kind == "message":
        request = field(of_request, nested((crossed,), DEEP))
    else:
        request = varint(1000 << 3 | 3) * DEEP + varint(1000 << 3 | 4) * DEEP
    code, _ = refused(channel, "/pps_v2.API/CreatePipeline", request)
    assert code in (grpc.StatusCode.INTERNAL, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNKNOWN)


@pytest.mark.parametrize("text", ["[" * DEEP + "]" * DEEP, '{"input":' * DEEP + "1" + "}" * DEEP,
                                  '{"input":{"cross":[' * 2000 + "]}}" * 2000])  # fmt: skip
def test_a_specification_that_is_nested_deeply(channel: grpc.Channel, text: str) -> None:
    asked = schema.pps_pb2.CreatePipelineV2Request(create_pipeline_request_json=text)
    code, _ = refused(channel, "/pps_v2.API/CreatePipelineV2", asked.SerializeToString())
    assert code is grpc.StatusCode.INVALID_ARGUMENT


def test_any_values_within_each_other(channel: grpc.Channel) -> None:
    """No call turns an Any into JSON or back: the value of the cache is bytes to the server."""
    url = b"type.googleapis.com/google.protobuf.Any"
    value = b""
    for _ in range(2000):
        value = field(1, url) + field(2, value)
    asked = schema.pfs_pb2.PutCacheRequest(key="nested")
    request = asked.SerializeToString() + field(asked.DESCRIPTOR.fields_by_name["value"].number, value)
    call(channel, "/pfs_v2.API/PutCache", request)
    got = schema.pfs_pb2.GetCacheRequest(key="nested").SerializeToString()
    assert value in call(channel, "/pfs_v2.API/GetCache", got)


def test_a_message_that_is_too_long(channel: grpc.Channel) -> None:
    code, text = refused(channel, "/pfs_v2.API/CreateRepo", field(2, b"x" * MAX_MESSAGE))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert str(MAX_MESSAGE) in text
