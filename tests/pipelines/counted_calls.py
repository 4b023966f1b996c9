"""A client whose transfers of files are counted."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import grpc
import python_pachyderm

from pipelines.client.server.connection import Connection


class CountedCalls(grpc.UnaryStreamClientInterceptor, grpc.StreamUnaryClientInterceptor):
    """Counts the calls that read files from the server, and the bytes of files that are sent to it."""

    def __init__(self) -> None:
        self.reads = 0
        self.sent = 0

    def intercept_stream_unary(self, call: Any, details: Any, requests: Iterator[Any]) -> Any:
        def passed() -> Iterator[Any]:
            for request in requests:
                self.sent += len(request.add_file.raw.value)
                yield request

        return call(details, passed())

    def intercept_unary_stream(self, call: Any, details: Any, request: Any) -> Any:
        self.reads += "/GetFile" in details.method  # or GetFileTAR
        return call(details, request)


@contextmanager
def counting(connection: Connection) -> Iterator[tuple[Connection, CountedCalls]]:
    """The connection through a client of its own, and the counts of its calls."""
    counted, client = CountedCalls(), python_pachyderm.Client.new_from_pachd_address(connection.address)
    plain = client._channel
    client._channel = grpc.intercept_channel(plain, counted)
    yield replace(connection, client=client), counted
    plain.close()
