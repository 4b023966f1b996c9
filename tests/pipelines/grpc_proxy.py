"""A server that passes calls on to another one, hears them, may be far away, and may not know some, or fail some."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

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


@dataclass(frozen=True)
class _Behaviour:
    """What a server does with calls beside passing them on, see `passed_on`."""

    unknown: str
    heard: Callable[[str], None]
    latency: float
    refused: Mapping[str, str]
    database: BusyDatabase = field(default_factory=BusyDatabase)


class _Passing(grpc.GenericRpcHandler):
    """Passes every call on, and behaves so."""

    def __init__(self, channel: grpc.Channel, behaviour: _Behaviour) -> None:
        self._channel, self._behaviour = channel, behaviour

    def service(self, details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes] | None":
        behaviour = self._behaviour
        if details.method.startswith(behaviour.unknown):
            return None
        call: grpc.StreamStreamMultiCallable[bytes, bytes] = self._channel.stream_stream(details.method)
        method = details.method.rpartition("/")[2]

        def through(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            metadata = tuple(each for each in context.invocation_metadata() if each[0] != "user-agent")
            time.sleep(behaviour.latency)
            if reason := behaviour.refused.get(method):
                context.abort(grpc.StatusCode.UNKNOWN, reason)
            if behaviour.database.refuses(method):
                context.abort(*ABORTED)
            try:
                replies = call(requests, metadata=metadata)
                if behaviour.database.fails(method):
                    list(replies)
                    context.abort(*ABORTED)
                yield from replies
            except grpc.RpcError as error:
                context.abort(error.code(), error.details() or "")
            finally:
                behaviour.heard(method)

        return grpc.stream_stream_rpc_method_handler(through)


@contextmanager
def passed_on(
    connection: Connection,
    unknown: str = "none",
    heard: Callable[[str], None] = lambda method: None,
    latency: float = 0.0,
    refused: Mapping[str, str] | None = None,
    database: BusyDatabase | None = None,
) -> Iterator[Connection]:
    """The connection, through a server that does not know the methods that begin so, is as far away as `latency` says,
    in seconds, and may have a busy database. heard: is told each call that has ended. refused: texts with which calls
    are refused, by method."""
    behaviour = _Behaviour(unknown, heard, latency, refused or {}, database or BusyDatabase())
    target = connection.address.removeprefix("grpc://")
    with grpc.insecure_channel(target) as channel, ThreadPoolExecutor(64) as threads:
        server = grpc.server(threads, handlers=[_Passing(channel, behaviour)])
        address = f"grpc://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        client = python_pachyderm.Client.new_from_pachd_address(address)
        yield replace(connection, client=client, address=address)
        client._channel.close()
        server.stop(None).wait()
