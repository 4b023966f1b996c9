"""The doors of the service: which requests come in, and the headers with which every response goes out.

Wraps an application of ASGI. Knows no routes but those that are open to all.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json

from stages.serving.answer.service_limits import ServiceLimits
from stages.serving.follow.configuration import ServiceConfiguration
from stages.serving.follow.refusals import Refusal
from stages.serving.http.body_streams import (
    ASGIApplication,
    Receive,
    RequestStream,
    ResponseStream,
    Scope,
    Send,
    StalledError,
)

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


class AccessControl:
    """An application behind its doors."""

    def __init__(self, inner: ASGIApplication, configuration: ServiceConfiguration, bounds: ServiceLimits) -> None:
        self._inner = inner
        self._configuration = configuration
        self._bounds = bounds
        self._token = configuration.token.encode()
        self.session = session(configuration.token) if configuration.token else ""
        """The value of the cookie of those who have given the token."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        headers = _Headers(scope["headers"])
        incoming = RequestStream(receive, self._bounds)
        outgoing = ResponseStream(incoming, send, _HEADERS, self._bounds)
        try:
            try:
                self._check(scope, headers)
                incoming.announced(headers.one("content-length"))
            except Refusal as refusal:
                await _refuse(refusal, outgoing.send)
                return
            await self._inner(scope, incoming.receive, outgoing.send)
        except StalledError:
            return  # the server then closes the connection

    def _check(self, scope: Scope, headers: _Headers) -> None:
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
        return hmac.compare_digest(token.encode(errors="replace"), self._token)


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


async def _refuse(refusal: Refusal, send: Send) -> None:
    body = json.dumps(refusal.as_data()).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in refusal.headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _check_origin(headers: _Headers) -> None:
    """Pages of other sites may not send anything in the name of the one who reads them."""
    site, origin = headers.one("sec-fetch-site"), headers.one("origin")
    if site and site not in ("same-origin", "none"):
        raise Refusal(403, "wrong-origin", "a page of another site may not use this service")
    if origin and origin.partition("://")[2].lower() != headers.one("host").lower():
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
    """The value of our cookie. Others of this host, on whichever port, may hold anything."""
    pairs = (each.strip().partition("=") for each in header.split(";"))
    return next((value.strip('"') for name, _, value in pairs if name == COOKIE), "")
