"""The doors of the service: which requests come in, and the headers with which every response goes out.

Wraps an application of ASGI. Knows no routes but those that are open to all.
"""

from __future__ import annotations

import hashlib
import hmac

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Receive, Scope, Send

from stages.serving.answer.service_limits import ServiceLimits
from stages.serving.follow.configuration import ServiceConfiguration, is_loopback
from stages.serving.follow.refusals import Refusal
from stages.serving.http.body_streams import RequestStream, ResponseStream, StalledError
from stages.serving.http.json_responses import refused

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

    def __init__(self, inner: ASGIApp, configuration: ServiceConfiguration, bounds: ServiceLimits) -> None:
        self._inner = inner
        self._configuration = configuration
        self._bounds = bounds
        self._token = configuration.token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        headers = Headers(scope=scope)
        incoming = RequestStream(receive, self._bounds)
        outgoing = ResponseStream(incoming, send, _HEADERS, self._bounds)
        answering = self._inner
        try:
            try:
                self._check(scope, headers)
                incoming.announced(_one(headers, "content-length"))
            except Refusal as refusal:
                answering = refused(refusal)
            await answering(scope, incoming.receive, outgoing.send)
        except StalledError:
            return  # the server then closes the connection

    def _check(self, scope: Scope, headers: Headers) -> None:
        path = scope["path"]
        if path not in _PROBES:
            self._check_host(_one(headers, "host"))
        if scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            _check_origin(headers)
        if self._token and path not in OPEN and not path.startswith("/assets/"):
            self._check_token(headers)

    def _check_host(self, host: str) -> None:
        """A page of another site could otherwise ask a service on this machine, under a name that leads here."""
        name = _name(host)
        if self._configuration.proxy and name == _name(self._configuration.proxy):
            return
        if is_loopback(name) or (not self._configuration.is_local and not self._configuration.proxy):
            return
        raise Refusal(403, "wrong-host", f"this service does not go by the name {host!r}: use its own address")

    def _check_token(self, headers: Headers) -> None:
        scheme, _, given = _one(headers, "authorization").partition(" ")
        if scheme.lower() == "bearer" and equal(given.strip(), self._token):
            return
        if equal(cookie_parser(_one(headers, "cookie")).get(COOKIE, ""), session(self._token)):
            return
        raise Refusal(401, "token-needed", "this service needs its token: send it as Authorization: Bearer, or sign in")


def equal(given: str, secret: str) -> bool:
    """Whether a text is the secret; the time that this takes does not tell where they differ."""
    return hmac.compare_digest(given.encode(errors="replace"), secret.encode())


def session(token: str) -> str:
    """The cookie's value for a token, from which the token does not follow."""
    return hmac.new(token.encode(), b"lookalike session", hashlib.sha256).hexdigest()


def _one(headers: Headers, name: str) -> str:
    """The header's value, "" if it is missing or there are several."""
    found = headers.getlist(name)
    return found[0] if len(found) == 1 else ""


def _check_origin(headers: Headers) -> None:
    """Pages of other sites may not send anything in the name of the one who reads them."""
    site, origin = _one(headers, "sec-fetch-site"), _one(headers, "origin")
    same = not origin or origin.partition("://")[2].lower() == _one(headers, "host").lower()
    if not same or site not in ("", "same-origin", "none"):
        raise Refusal(403, "wrong-origin", "a page of another site may not use this service")


def _name(host: str) -> str:
    """The name in a Host header, without its port."""
    if host.startswith("["):
        return host.partition("]")[0].removeprefix("[").lower()
    return host.partition(":")[0].lower().rstrip(".")
