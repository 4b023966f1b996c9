"""Reads that outlast an outage of the server, such as a restart of pachd. Never used for calls that change anything:
nobody knows how far such a call has come."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

import grpc

from pipelines.client.server.connection import Connection
from pipelines.client.server.grpc_errors import cause, explain, is_unavailable
from pipelines.errors import LookalikeError

LONGEST = timedelta(minutes=2)
"""The longest outage: a pachd that Kubernetes starts again is ready within one minute."""

_TRY_EVERY = 0.5
"""Seconds."""

_Found = TypeVar("_Found")


def with_retries(connection: Connection, read: Callable[[], _Found]) -> _Found:
    """The result of `read`, which is called again from its beginning while the server does not answer, and says so.
    Raises LookalikeError after LONGEST."""
    outage: _Outage | None = None
    while True:
        try:
            found = read()
        except (grpc.RpcError, ConnectionError) as error:
            failed = cause(error)
            if failed is None or not is_unavailable(failed):
                raise
            outage = outage or _Outage(connection)
            outage.wait(failed)
        else:
            if outage is not None:
                outage.end()
            return found


class _Outage:
    """An outage that begins now."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._began = time.monotonic()
        until = datetime.now() + LONGEST
        self._reason = (
            f"the library's server at {connection.address} does not answer, trying again until {until:%H:%M:%S}"
        )

    def wait(self, failed: grpc.RpcError) -> None:
        """Waits for the next attempt."""
        if time.monotonic() - self._began > LONGEST.total_seconds():
            raise LookalikeError(explain(failed)) from failed
        self._connection.waiting(self._reason)
        time.sleep(_TRY_EVERY)

    def end(self) -> None:
        """The server has answered."""
        self._connection.waiting(
            f"the library's server at {self._connection.address} answers again, at {datetime.now():%H:%M:%S}"
        )
