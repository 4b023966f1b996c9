"""Streams that are open: their number is limited, and one that nobody reads ends and holds nothing."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from google.protobuf.wrappers_pb2 import BytesValue

from localpachd.api.doors.parked_calls import ParkedCalls
from localpachd.api.doors.status import StatusInterceptor
from localpachd.api.doors.stream_limit import StreamLimit


class _Endless:
    """A server with a stream without an end; two may be open."""

    def __init__(self) -> None:
        self.limit = StreamLimit(2, idle=0.0)
        self.ended = threading.Semaphore(0)
        self.sent = 0
        self.pool = ThreadPoolExecutor(8)
        self.server = grpc.server(self.pool, interceptors=[StatusInterceptor(), self.limit])
        made = grpc.unary_stream_rpc_method_handler(self._send, BytesValue.FromString, BytesValue.SerializeToString)
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Test", {"Read": made}),))
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def _send(self, request: BytesValue, context: grpc.ServicerContext) -> Iterator[BytesValue]:
        try:
            while True:
                self.sent += 1
                yield BytesValue(value=b"x" * 500_000)
        finally:
            self.ended.release()


@pytest.fixture
def endless() -> Iterator[_Endless]:
    made = _Endless()
    yield made
    made.server.stop(None).wait()
    made.pool.shutdown()


@pytest.fixture
def read(endless: _Endless) -> Iterator[Any]:
    """Calls that read the stream."""
    with grpc.insecure_channel(f"127.0.0.1:{endless.port}") as channel:
        call = channel.unary_stream("/test.Test/Read", BytesValue.SerializeToString, BytesValue.FromString)
        yield lambda: call(BytesValue())


def _stands_still(endless: _Endless) -> None:
    """Waits until nothing more can be sent."""
    end = time.monotonic() + 60
    before = -1
    while endless.sent != before:
        assert time.monotonic() < end
        before = endless.sent
        time.sleep(0.3)


def test_one_stream_too_many_is_refused_until_another_ends(endless: _Endless, read: Any) -> None:
    first, second = read(), read()
    next(first)
    next(second)
    with pytest.raises(grpc.RpcError) as refused:
        next(read())
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert str(refused.value.details()).startswith("2 uploads, downloads and listings are under way")
    first.cancel()
    assert endless.ended.acquire(timeout=30)
    next(read())


def test_a_stream_that_nobody_reads_ends(endless: _Endless, read: Any) -> None:
    unread = read()
    next(unread)
    _stands_still(endless)
    assert endless.limit.end_idle() == 1
    assert endless.ended.acquire(timeout=30)
    with pytest.raises(grpc.RpcError):
        list(unread)
    assert endless.limit.end_idle() == 0


def test_a_waiting_call_whose_replies_nobody_reads_ends() -> None:
    parking = ParkedCalls(idle=0.0, crowded=0.0)
    ended = threading.Event()
    sent = 0

    def steps(request: BytesValue, context: grpc.ServicerContext) -> Iterator[BytesValue]:
        nonlocal sent
        try:
            while context.is_active():
                sent += 1
                yield BytesValue(value=b"x" * 500_000)
        finally:
            ended.set()

    with ThreadPoolExecutor(4) as pool:
        server = grpc.server(pool)
        made = grpc.unary_stream_rpc_method_handler(
            parking.behaviour("test.Test/Wait", steps), BytesValue.FromString, BytesValue.SerializeToString
        )
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Test", {"Wait": made}),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            call = channel.unary_stream("/test.Test/Wait", BytesValue.SerializeToString, BytesValue.FromString)
            unread = call(BytesValue())
            next(unread)
            before = 0
            while sent != before:
                before = sent
                time.sleep(0.3)
            assert parking.end_idle() == 1
            assert ended.wait(30)
            with pytest.raises(grpc.RpcError):
                list(unread)
        server.stop(None).wait()
        parking.close()
