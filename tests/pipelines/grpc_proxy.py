"""A server that passes calls on to another one, hears them, and may not know some, or fail some."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import grpc
import python_pachyderm

from pipelines.client.server.connection import Connection

ABORTED = (
    grpc.StatusCode.UNKNOWN,
    "start commit: ERROR: current transaction is aborted, commands ignored until end of transaction block "
    "(SQLSTATE 25P02)",
)
"""What a busy Pachyderm 2.12 says of a call."""


class BusyDatabase:
    """How often calls still fail as on a server whose database is busy, by method: before they are passed on, or
    (`done`) after, when the server has done what they say."""

    def __init__(self, refused: dict[str, int] | None = None, done: dict[str, int] | None = None) -> None:
        self._refused, self._done = Counter(refused or {}), Counter(done or {})

    def refuses(self, method: str) -> bool:
        """Whether this call fails, and is not passed on."""
        return self._fails(self._refused, method)

    def fails(self, method: str) -> bool:
        """Whether this call fails, though it was passed on and has succeeded."""
        return self._fails(self._done, method)

    def _fails(self, left: "Counter[str]", method: str) -> bool:
        left[method] -= 1
        return left[method] >= 0


class _Passing(grpc.GenericRpcHandler):
    """Passes every call on, except those whose method begins with `unknown`, and tells `heard` each that has ended."""

    def __init__(
        self, channel: grpc.Channel, unknown: str, heard: Callable[[str], None], database: BusyDatabase
    ) -> None:
        self._channel, self._unknown, self._heard, self._database = channel, unknown, heard, database

    def service(self, details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes] | None":
        if details.method.startswith(self._unknown):
            return None
        call: grpc.StreamStreamMultiCallable[bytes, bytes] = self._channel.stream_stream(details.method)

        method = details.method.rpartition("/")[2]

        def through(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            metadata = tuple(each for each in context.invocation_metadata() if each[0] != "user-agent")
            if self._database.refuses(method):
                context.abort(*ABORTED)
            try:
                replies = call(requests, metadata=metadata)
                if self._database.fails(method):
                    list(replies)
                    context.abort(*ABORTED)
                yield from replies
            except grpc.RpcError as error:
                context.abort(error.code(), error.details() or "")
            finally:
                self._heard(method)

        return grpc.stream_stream_rpc_method_handler(through)


@contextmanager
def passed_on(
    connection: Connection,
    unknown: str = "none",
    heard: Callable[[str], None] = lambda method: None,
    database: BusyDatabase | None = None,
) -> Iterator[Connection]:
    """The connection, through a server that does not know the methods that begin so, and that may have a busy
    database."""
    target = connection.address.removeprefix("grpc://")
    with grpc.insecure_channel(target) as channel, ThreadPoolExecutor(8) as threads:
        server = grpc.server(threads, handlers=[_Passing(channel, unknown, heard, database or BusyDatabase())])
        address = f"grpc://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        client = python_pachyderm.Client.new_from_pachd_address(address)
        yield replace(connection, client=client, address=address)
        client._channel.close()
        server.stop(None).wait()
