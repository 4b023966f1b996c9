"""A connection of the service, which is closed if no request comes.

uvicorn limits the time between two requests, but not that until the first one, nor the one that headers take.
"""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

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
