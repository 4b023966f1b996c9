"""The socket that the service listens on, and its connections, which are closed if no request comes.

uvicorn limits the time between two requests, but not that until the first one, nor the one that headers take.
"""

import asyncio
import errno
import os
import socket

from uvicorn.protocols.http.h11_impl import H11Protocol

from stages.datum.contract import StageError

_BACKLOG = 1024
"""Connections that wait until the service takes them."""

_WITHIN = 20.0
"""Seconds from the beginning of a connection to the end of its first headers, and from the first byte of later ones."""


class HeaderTimeoutProtocol(H11Protocol):
    """uvicorn's protocol for HTTP/1.1 with a limit for the time that headers take."""

    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begins the time for the first request."""
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        """Takes bytes; ends the time once the headers are complete."""
        if self._due is None and (self.cycle is None or self.cycle.response_complete):
            self._expect()
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._heard()

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the time."""
        self._heard()
        super().connection_lost(exc)

    def _expect(self) -> None:
        self._due = self.loop.call_later(_WITHIN, self.transport.close)

    def _heard(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None


def open_socket(host: str, port: int) -> socket.socket:
    """A socket that listens at an address; port 0 takes a free one. Raises StageError with the way out."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise StageError(f"{host} is not an address of this machine: {error.strerror}") from error
    found = socket.socket(family, kind, protocol)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(_BACKLOG)
        found.setblocking(False)
    except OSError as error:
        found.close()
        raise StageError(_reason(host, port, error)) from error
    return found


def _reason(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} of {host} is in use, perhaps by another service: stop that, or choose a port with --port, "
            "where 0 takes a free one"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine: listen on 127.0.0.1, or on 0.0.0.0 for all addresses"
    if error.errno == errno.EACCES:
        return f"this user may not listen on port {port}: choose one from 1024 on"
    return f"cannot listen on port {port} of {host}: {os.strerror(error.errno or 0)}"
