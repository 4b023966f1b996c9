"""The doors of the service: which requests come in, and the headers with which every response goes out.

Wraps an application of ASGI. Knows no routes but those that are open to all.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import json
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import urlsplit

from stages.serving.configuration import Configuration
from stages.serving.failures import Refusal

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

COOKIE = "lookalike-session"

OPEN = ("/", "/health", "/ready", "/session", "/docs", "/openapi.json", "/favicon.ico")
"""Paths that need no token: they tell nothing about the library."""

_PROBES = ("/health", "/ready")
"""Paths that probes ask by the address of the machine."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

_HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}

_IDLE = 30.0
"""Seconds for which a body may bring nothing."""

_LONGEST = 300.0
"""Seconds for a whole body."""


class Access:
    """An application behind its doors."""

    def __init__(self, inner: Application, configuration: Configuration, most: int) -> None:
        """most: bytes of a request's body."""
        self._inner = inner
        self._configuration = configuration
        self._most = most
        self._token = configuration.token.encode()
        self.session = session(configuration.token) if configuration.token else ""
        """The value of the cookie of those who have given the token."""

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        headers = _Headers(scope["headers"])
        try:
            self._check(scope, headers)
            body = _Body(receive, headers, self._most)
        except Refusal as refusal:
            await _refuse(refusal, _adding(send))
            return
        await self._inner(scope, body.receive, _adding(send))

    def _check(self, scope: MutableMapping[str, Any], headers: _Headers) -> None:
        path = scope["path"]
        if path not in _PROBES:
            self._check_host(headers.one("host"))
        if scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            _check_origin(headers)
        if self._token and path not in OPEN and not path.startswith("/assets/"):
            self._check_token(headers)

    def _check_host(self, host: str) -> None:
        """A page of another site could otherwise ask a service on this machine, under a name that leads here."""
        name = _name(host)
        if self._configuration.proxy and name == _name(self._configuration.proxy):
            return
        if _is_loopback(name) or (not self._configuration.is_local and not self._configuration.proxy):
            return
        raise Refusal(403, "wrong-host", f"this service does not go by the name {host!r}: use its own address")

    def _check_token(self, headers: _Headers) -> None:
        scheme, _, given = headers.one("authorization").partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self._token):
            return
        if hmac.compare_digest(_cookie(headers.one("cookie")).encode(), self.session.encode()):
            return
        raise Refusal(401, "token-needed", "this service needs its token: send it as Authorization: Bearer, or sign in")

    def accepts(self, token: str) -> bool:
        """Whether this is the token."""
        return hmac.compare_digest(token.encode(), self._token)


def session(token: str) -> str:
    """The cookie's value for a token, from which the token does not follow."""
    return hmac.new(token.encode(), b"lookalike session", hashlib.sha256).hexdigest()


class _Headers:
    """The headers of a request, by names in lower case."""

    def __init__(self, pairs: list[tuple[bytes, bytes]]) -> None:
        self._pairs = pairs

    def one(self, name: str) -> str:
        """The header's value, "" if it is missing or there are several."""
        found = [value for key, value in self._pairs if key == name.encode()]
        return found[0].decode("latin-1") if len(found) == 1 else ""


class _Body:
    """A body that comes neither too slowly nor too large."""

    def __init__(self, receive: Receive, headers: _Headers, most: int) -> None:
        self._receive = receive
        self._most = most
        self._got = 0
        self._complete = False
        self._until = asyncio.get_running_loop().time() + _LONGEST
        length = headers.one("content-length")
        if length.isascii() and length.isdigit() and int(length) > most:
            raise _too_large(most)

    async def receive(self) -> Message:
        if self._complete:
            return await self._receive()  # the end of the connection
        left = self._until - asyncio.get_running_loop().time()
        try:
            message = await asyncio.wait_for(self._receive(), min(_IDLE, left))
        except TimeoutError as error:
            raise Refusal(408, "too-slow", "the request's body came too slowly") from error
        self._got += len(message.get("body", b""))
        self._complete = message["type"] != "http.request" or not message.get("more_body", False)
        if self._got > self._most:
            raise _too_large(self._most)
        return message


def _too_large(most: int) -> Refusal:
    return Refusal(413, "too-large", f"the request has more than {most >> 20} MiB: send smaller or fewer pictures")


def _adding(send: Send) -> Send:
    """Sends with the headers that every response has, where it does not have its own."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            there = {name for name, _ in message.get("headers", [])}
            added = [(name.encode(), value.encode()) for name, value in _HEADERS.items() if name.encode() not in there]
            message["headers"] = [*message.get("headers", []), *added]
        await send(message)

    return sending


async def _refuse(refusal: Refusal, send: Send) -> None:
    body = json.dumps(refusal.as_data()).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in refusal.headers.items()]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refusal.status in (408, 413):
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _check_origin(headers: _Headers) -> None:
    """Pages of other sites may not send anything in the name of the one who reads them."""
    site, origin = headers.one("sec-fetch-site"), headers.one("origin")
    if site and site not in ("same-origin", "none"):
        raise Refusal(403, "wrong-origin", "a page of another site may not use this service")
    if origin and urlsplit(origin).netloc.lower() != headers.one("host").lower():
        raise Refusal(403, "wrong-origin", "a page of another site may not use this service")


def _name(host: str) -> str:
    """The name in a Host header, without its port."""
    if host.startswith("["):
        return host.partition("]")[0].removeprefix("[").lower()
    return host.partition(":")[0].lower().rstrip(".")


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""
