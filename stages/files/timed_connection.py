"""Connections to web servers, with one limit of time for the look-up of the name and all that is sent and received:
`until`, in seconds as time.monotonic counts them. What is not done by then raises TimeoutError."""

from __future__ import annotations

import io
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

HostResolver = Callable[[str, int], Sequence[str]]
"""Gives the addresses of a host name; raises OSError."""

_PIECE = 1 << 16


def resolve_in_time(resolve: HostResolver, host: str, port: int, until: float) -> Sequence[str]:
    """The addresses of a host. Raises TimeoutError: the system's resolver has limits of its own, and knows no other."""
    answer: Future[Sequence[str]] = Future()

    def look() -> None:
        try:
            answer.set_result(resolve(host, port))
        except Exception as failure:
            answer.set_exception(failure)

    threading.Thread(target=look, name="resolve", daemon=True).start()
    return answer.result(timeout=_left(until))


def reach(addresses: Sequence[str], port: int, until: float) -> socket.socket:
    """A connection to the first of the addresses that can be reached, as this machine may lack IPv6. Raises
    OSError."""
    for others, address in zip(range(len(addresses) - 1, -1, -1), addresses, strict=True):
        try:
            return socket.create_connection((address, port), timeout=_left(until) / (others + 1))
        except OSError:
            if not others:
                raise
    raise ConnectionError


def secure(raw: socket.socket, scheme: str, host: str, until: float) -> socket.socket:
    """The connection, with TLS for https. Raises OSError, or ValueError for a name that no certificate can have."""
    if scheme == "http":
        return raw
    try:
        raw.settimeout(_left(until))
        return ssl.create_default_context().wrap_socket(raw, server_hostname=host)
    except BaseException:
        raw.close()
        raise


def _left(until: float) -> float:
    """The seconds until then. Raises TimeoutError if it is over."""
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class TimedConnection:
    """A connection with one limit of time for all that it sends and receives, which single bytes do not extend: as
    much of a socket as http.client uses."""

    def __init__(self, raw: socket.socket, until: float) -> None:
        self._raw = raw
        self._until = until

    def sendall(self, data: bytes) -> None:
        self._raw.settimeout(_left(self._until))
        self._raw.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self._raw, self._until), _PIECE)

    def close(self) -> None:
        """Nothing: http.client closes a connection that is not kept before its content is read."""


class _TimedReader(io.RawIOBase):
    def __init__(self, raw: socket.socket, until: float) -> None:
        self._raw = raw
        self._until = until

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        self._raw.settimeout(_left(self._until))
        return self._raw.recv_into(into)
