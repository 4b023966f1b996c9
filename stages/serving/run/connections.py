"""The socket that the service listens on, and its connections: how many a client may have, how long in silence.

uvicorn limits the time between two requests, but not that until the first one, nor the one that headers take; and its
limit of connections counts silent ones, and refuses probes as well.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import itertools
import os
import select
import socket
from collections import Counter, defaultdict
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from stages.datum.contract import StageError

_BACKLOG = 1024
"""Connections that wait until the service takes them."""

WITHIN = 10.0
"""Seconds for the handshake of TLS, then to the end of the first headers, and from the first byte of later ones."""


_LOOKED_AT = 64  # connections of which one may give way to a new one


class ServiceLoop(asyncio.SelectorEventLoop):
    """asyncio's loop, in which a handshake of TLS has no more time than headers have."""

    async def create_server(self, *arguments: Any, **named: Any) -> asyncio.Server:
        """Listens as the base class does."""
        if named.get("ssl"):
            named["ssl_handshake_timeout"] = WITHIN
        made: asyncio.Server = await super().create_server(*arguments, **named)
        return made


class _Crowd:
    """The connections of one server, by client. waiting: those that may give way, the oldest first. busy: the number of
    those whose requests are under way."""

    def __init__(self) -> None:
        self.waiting: defaultdict[str, dict[ServiceConnection, None]] = defaultdict(dict)
        self.busy: Counter[str] = Counter()


_crowds: WeakKeyDictionary[ServerState, _Crowd] = WeakKeyDictionary()


class ServiceConnection(H11Protocol):
    """uvicorn's protocol for HTTP/1.1 with limits. A connection without a request, or with one that is refused, gives
    way to new ones where there are too many, so only requests under way can fill the service. Those beyond are marked:
    the application refuses them unless they are probes.

    most: requests under way. share: those of one client. spare: connections beyond `most`, for refusals and probes."""

    most: ClassVar[int] = 900
    share: ClassVar[int] = 225
    spare: ClassVar[int] = 60

    _due: asyncio.TimerHandle | None = None
    _under_way = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begins the time for the first request; closes connections that have waited longest if there are too many."""
        super().connection_made(transport)
        self._peer = client_key(self.client[0] if self.client else "")
        self._crowd = _crowds.setdefault(self.server_state, _Crowd())
        self._service, self.app = self.app, self._serve
        self._expect()
        waiting, busy, own = self._crowd.waiting, self._crowd.busy, self._crowd.waiting[self._peer]
        own[self] = None
        self._make_room(own, len(own) + busy[self._peer] - self.share if self._peer else 0)
        whole = sum(map(len, waiting.values())) + busy.total()
        self._make_room(max(waiting.values(), key=len), whole - self.most - self.spare)

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
        self._crowd.waiting[self._peer].pop(self, None)
        if not self._crowd.waiting[self._peer]:
            del self._crowd.waiting[self._peer]
        super().connection_lost(exc)

    def is_spoken_to(self) -> bool:
        """Whether it has bytes that the loop has not read yet: many connections may come before these."""
        poll = select.poll()
        poll.register(self.transport.get_extra_info("socket"), select.POLLIN)
        return bool(poll.poll(0))

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request whose state tells the client, and whether there are too many requests; `lingers` is called
        once it is refused."""
        busy = self._crowd.busy
        crowded = busy.total() >= self.most or (bool(self._peer) and busy[self._peer] >= self.share)
        scope["state"] |= {"client": self._peer, "crowded": crowded, "lingers": self._wait}
        if not crowded:
            self._under_way = True
            busy[self._peer] += 1
            self._crowd.waiting[self._peer].pop(self, None)
        try:
            await self._service(scope, receive, send)
        finally:
            self._wait()

    def _wait(self) -> None:
        if self._under_way:
            self._under_way = False
            self._crowd.busy.subtract({self._peer: 1})
            self._crowd.busy = +self._crowd.busy
            if not self.transport.is_closing():
                self._crowd.waiting[self._peer][self] = None

    def _make_room(self, waiting: dict[ServiceConnection, None], beyond: int) -> None:
        """Closes so many other connections, as far as the oldest ones are silent. This one may still be about to ask,
        and is then refused in words."""
        for each in list(itertools.islice(waiting, _LOOKED_AT)) if beyond > 0 else []:
            if beyond > 0 and each is not self and not each.is_spoken_to():
                beyond -= 1
                del waiting[each]
                each.transport.abort()

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
    address = ipaddress.ip_address(host.partition("%")[0] or "::1")
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
