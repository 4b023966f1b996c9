"""A server that passes calls on to another one, hears them, and may not know some."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import grpc
import python_pachyderm

from pipelines.client.server.connection import Connection


class _Passing(grpc.GenericRpcHandler):
    """Passes every call on, except those whose method begins with `unknown`, and tells `heard` each that has ended."""

    def __init__(self, channel: grpc.Channel, unknown: str, heard: Callable[[str], None]) -> None:
        self._channel, self._unknown, self._heard = channel, unknown, heard

    def service(self, details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes] | None":
        if details.method.startswith(self._unknown):
            return None
        call: grpc.StreamStreamMultiCallable[bytes, bytes] = self._channel.stream_stream(details.method)

        def through(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            metadata = tuple(each for each in context.invocation_metadata() if each[0] != "user-agent")
            try:
                yield from call(requests, metadata=metadata)
            except grpc.RpcError as error:
                context.abort(error.code(), error.details() or "")
            finally:
                self._heard(details.method.rpartition("/")[2])

        return grpc.stream_stream_rpc_method_handler(through)


@contextmanager
def passed_on(
    connection: Connection, unknown: str = "none", heard: Callable[[str], None] = lambda method: None
) -> Iterator[Connection]:
    """The connection, through a server that does not know the methods that begin so."""
    target = connection.address.removeprefix("grpc://")
    with grpc.insecure_channel(target) as channel, ThreadPoolExecutor(8) as threads:
        server = grpc.server(threads, handlers=[_Passing(channel, unknown, heard)])
        address = f"grpc://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        client = python_pachyderm.Client.new_from_pachd_address(address)
        yield replace(connection, client=client, address=address)
        client._channel.close()
        server.stop(None).wait()
