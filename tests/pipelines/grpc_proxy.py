"""A server that passes calls on to another one, hears them, and may not know some."""

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType

import grpc
import python_pachyderm

from pipelines.client.server.connection import Connection


class _Passing(grpc.GenericRpcHandler):
    """Passes every call on after these seconds, except those whose method begins with `unknown`, and those that are
    refused with a text, and tells `heard` each that has ended."""

    def __init__(
        self,
        channel: grpc.Channel,
        unknown: str,
        heard: Callable[[str], None],
        latency: float,
        refused: Mapping[str, str],
    ) -> None:
        self._channel, self._unknown, self._heard = channel, unknown, heard
        self._latency, self._refused = latency, refused

    def service(self, details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes] | None":
        if details.method.startswith(self._unknown):
            return None
        call: grpc.StreamStreamMultiCallable[bytes, bytes] = self._channel.stream_stream(details.method)

        def through(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            time.sleep(self._latency)
            if reason := self._refused.get(details.method.rpartition("/")[2]):
                context.abort(grpc.StatusCode.UNKNOWN, reason)
            try:
                yield from call(requests)
            except grpc.RpcError as error:
                context.abort(error.code(), error.details() or "")
            finally:
                self._heard(details.method.rpartition("/")[2])

        return grpc.stream_stream_rpc_method_handler(through)


@contextmanager
def passed_on(
    connection: Connection,
    unknown: str = "none",
    heard: Callable[[str], None] = lambda method: None,
    latency: float = 0.0,
    refused: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Connection]:
    """The connection, through a server that does not know the methods that begin so, and is as far away as `latency`
    says, in seconds. `refused`: texts with which calls are refused, by method."""
    target = connection.address.removeprefix("grpc://")
    with grpc.insecure_channel(target) as channel, ThreadPoolExecutor(64) as threads:
        server = grpc.server(threads, handlers=[_Passing(channel, unknown, heard, latency, refused)])
        address = f"grpc://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        client = python_pachyderm.Client.new_from_pachd_address(address)
        yield replace(connection, client=client, address=address)
        client._channel.close()
        server.stop(None).wait()
