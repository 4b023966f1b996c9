"""The socket that the service listens on, and its connections: how many a client may have, how long in silence.

uvicorn limits the time between two requests, but not that until the first one, nor the one that headers take; and its
limit of connections counts silent ones, and refuses probes as well.
"""

import asyncio
import errno
import ipaddress
import itertools
import os
import select
import socket
from typing import Any, ClassVar

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from stages.datum.contract import StageError

_BACKLOG = 1024
"""Connections that wait until the service takes them."""

WITHIN = 10.0
"""Seconds for the handshake of TLS, then to the end of the first headers, and from the first byte of later ones."""


class ServiceLoop(asyncio.SelectorEventLoop):
    """asyncio's loop, in which a handshake of TLS has no more time than headers have."""

    async def create_server(self, *arguments: Any, **named: Any) -> asyncio.Server:
        """Listens as the base class does."""
        if named.get("ssl"):
            named["ssl_handshake_timeout"] = WITHIN
        made: asyncio.Server = await super().create_server(*arguments, **named)
        return made


class ServiceConnection(H11Protocol):
    """uvicorn's protocol for HTTP/1.1 with limits. A connection without a request, or with one that is refused, gives
    way to new ones where there are too many, so only requests under way can fill the service. Those beyond are marked:
    the application refuses them unless they are probes.

    most: requests under way. share: those of one client. spare: connections beyond `most`, for refusals and probes."""

    most: ClassVar[int] = 900
    share: ClassVar[int] = 225
    spare: ClassVar[int] = 60

    _due: asyncio.TimerHandle | None = None
    _state: dict[str, Any] = {}  # noqa: RUF012  replaced with each request

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begins the time for the first request; closes the connection that has waited longest if there are too
        many."""
        super().connection_made(transport)
        self._begun = self.loop.time()
        self._peer = client_key(self.client[0] if self.client else "")
        self._service, self.app = self.app, self._marked
        self._expect()
        others = self._others()
        self._make_room([each for each in others if self._peer and each._peer == self._peer], self.share)
        self._make_room(others, self.most + self.spare)

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

    @property
    def _waits(self) -> bool:
        """Whether nothing is lost with it: no request, or one whose refusal is sent."""
        return self.cycle is None or self.cycle.response_complete or bool(self._state.get("refused"))

    def _others(self) -> list["ServiceConnection"]:
        """The other connections that are open, once there are so many that a limit may be reached."""
        if len(self.connections) <= self.share:
            return []
        return [
            each
            for each in self.connections
            if isinstance(each, ServiceConnection) and each is not self and not each.transport.is_closing()
        ]

    @staticmethod
    def _make_room(others: list["ServiceConnection"], most: int) -> None:
        beyond = len(others) - most + 1
        if beyond > 0:
            longest = sorted(others, key=lambda other: (other.cycle is not None, other._begun))
            silent = (each for each in longest if each._waits and not each._is_spoken_to())
            for each in itertools.islice(silent, beyond):
                each.transport.abort()

    def _is_spoken_to(self) -> bool:
        """Whether it has bytes that the loop has not read yet: many connections may come before these."""
        poll = select.poll()
        poll.register(self.transport.get_extra_info("socket"), select.POLLIN)
        return bool(poll.poll(0))

    async def _marked(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request whose state tells the client, and whether there are too many requests."""
        self._state = scope["state"]
        under_way = [each._peer for each in self._others() if not each._waits and not each._state.get("crowded")]
        of_client = under_way.count(self._peer) if self._peer else 0
        self._state |= {"client": self._peer, "crowded": len(under_way) >= self.most or of_client >= self.share}
        await self._service(scope, receive, send)

    def _expect(self) -> None:
        self._due = self.loop.call_later(WITHIN, self.transport.close)

    def _heard(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None


class ProxiedConnection(ServiceConnection):
    """A connection of a proxy, behind which there are many clients: it has no share of its own."""

    share = ServiceConnection.most


def client_key(host: str) -> str:
    """The client at an address, for its share: of IPv6 a network of 64 bits, which one client usually has. "" for this
    machine, whose programs and proxies have no share."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return ""
    address = getattr(address, "ipv4_mapped", None) or address
    if address.is_loopback:
        return ""
    return str(ipaddress.ip_network((address, 64), strict=False) if address.version == 6 else address)


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
