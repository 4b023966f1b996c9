"""The doors of the service: which requests come in, how those who have the token get their cookie, and the headers with
which every response goes out.

Knows no routes but its own and those that are open to all.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import time

from fastapi import FastAPI, Request, Response
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Receive, Scope, Send

from stages.files.question import parse_json
from stages.serving.answer.load_limiter import ServiceLimits
from stages.serving.follow.configuration import ServiceConfiguration, is_loopback
from stages.serving.follow.refusals import Refusal, bad_request, service_busy
from stages.serving.http import request_body
from stages.serving.http.body_streams import RequestStream, ResponseStream, StalledError
from stages.serving.http.json_responses import AsciiJSONResponse, refused

_COOKIE = "lookalike-session"

_COOKIE_SECONDS = 30 * 24 * 3600  # after which one has to sign in again

_TOKEN_BYTES = 1 << 12
"""Most bytes of a request that signs in."""

OPEN = ("/", "/health", "/ready", "/session", "/docs", "/openapi.json", "/favicon.ico")
"""Paths that need no token: they tell nothing about the library."""

PROBES = ("/health", "/ready", "/metrics")
"""Paths that machines ask on their own: they are answered however much goes on, and keep no service running."""

_OF_ADDRESS = ("/health", "/ready")
"""Paths that probes ask by the address of the machine."""

_ONCE = ("host", "origin", "sec-fetch-site", "authorization", "content-type", "content-length")
"""Headers of which a second one could be the one that another program heeds."""

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::([0-9]{0,5}))?", re.IGNORECASE)  # a name, and a port

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
    """An application of ASGI behind its doors."""

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
        incoming = RequestStream(receive, self._bounds, headers, scope.setdefault("state", {}))
        outgoing = ResponseStream(incoming, send, _HEADERS, self._bounds)
        answering = self._inner
        try:
            try:
                self._check(scope, headers)
                incoming.announced(headers.get("content-length", ""))
            except Refusal as refusal:
                answering = refused(refusal)
            await answering(scope, incoming.receive, outgoing.send)
        except StalledError:
            return  # the server then closes the connection

    def _check(self, scope: Scope, headers: Headers) -> None:
        path = scope["path"]
        if path not in PROBES and scope["state"].get("crowded"):
            raise service_busy()
        for name in _ONCE:
            if len(headers.getlist(name)) > 1:
                raise bad_request(f"the request has several headers {name}")
        if path not in _OF_ADDRESS:
            self._check_host(headers.get("host", ""))
        if scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            _check_origin(headers)
        if self._token and path not in OPEN and not path.startswith("/assets/"):
            self._check_token(headers)

    def _check_host(self, host: str) -> None:
        """A page of another site could otherwise ask a service on this machine, under a name that leads here."""
        if not _HOST.fullmatch(host):
            raise bad_request(f"the request's header Host is not a name with a port: {host[:80]!r}")
        name = _name(host)
        if self._configuration.proxy and name == _name(self._configuration.proxy):
            return
        if is_loopback(name) or (not self._configuration.is_local and not self._configuration.proxy):
            return
        raise Refusal(403, "wrong-host", f"this service does not go by the name {host!r}: use its own address")

    def _check_token(self, headers: Headers) -> None:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _equal(given.strip(), self._token):
            return
        given = cookie_parser(headers.get("cookie", "")).get(_cookie_name(headers.get("host", "")), "")
        until = given.partition(".")[0]
        due = int(until) if until.isascii() and until.isdigit() and len(until) < 16 else 0
        if due > time.time() and _equal(given, session(self._token, due)):
            return
        raise Refusal(401, "token-needed", "this service needs its token: send it as Authorization: Bearer, or sign in")


class SessionRoutes:
    """The routes that give and take the cookie. guess: seconds after which a wrong token is refused."""

    def __init__(self, configuration: ServiceConfiguration, guess: float) -> None:
        self._configuration = configuration
        self._guess = guess

    def add_to(self, app: FastAPI) -> None:
        app.post("/session", tags=["access"])(self.sign_in)
        app.delete("/session", tags=["access"])(self.sign_out)

    async def sign_in(self, request: Request) -> Response:
        """Gives the cookie of those who have the token: {"token": "…"}."""
        given = parse_json(await request_body.read_small(request, _TOKEN_BYTES))
        token = given.get("token") if isinstance(given, dict) else None
        secret = self._configuration.token
        if not isinstance(token, str) or not secret or not _equal(token, secret):
            await asyncio.sleep(self._guess)  # so that guessing takes long
            raise Refusal(401, "wrong-token", "this is not the token of this service")
        secure = bool(self._configuration.certificate or self._configuration.proxy)
        response = AsciiJSONResponse({})
        name, value = _cookie_name(request.headers.get("host", "")), session(secret, int(time.time()) + _COOKIE_SECONDS)
        response.set_cookie(name, value, _COOKIE_SECONDS, httponly=True, samesite="strict", secure=secure)
        return response

    async def sign_out(self, request: Request) -> Response:
        """Takes the cookie back."""
        response = AsciiJSONResponse({})
        response.delete_cookie(_cookie_name(request.headers.get("host", "")))
        return response


def _equal(given: str, secret: str) -> bool:
    """Whether a text is the secret; the time that this takes does not tell where they differ."""
    return hmac.compare_digest(given.encode(errors="replace"), secret.encode())


def _cookie_name(host: str) -> str:
    """The cookie's name for those who ask this host. It holds the port, as browsers send cookies to all ports."""
    found = _HOST.fullmatch(host)
    return f"{_COOKIE}-{found[2]}" if found and found[2] else _COOKIE


def session(token: str, until: int) -> str:
    """The cookie's value for a token, from which the token does not follow. until: seconds since 1970."""
    return f"{until}.{hmac.new(token.encode(), b'lookalike session %d' % until, hashlib.sha256).hexdigest()}"


def _check_origin(headers: Headers) -> None:
    """Pages of other sites may not send anything in the name of the one who reads them."""
    site, origin = headers.get("sec-fetch-site", ""), headers.get("origin")
    same = origin is None or origin.partition("://")[2].lower() == headers.get("host", "").lower()
    if not same or site not in ("", "same-origin", "none"):
        raise Refusal(403, "wrong-origin", "a page of another site may not use this service")


def _name(host: str) -> str:
    """The name in a Host header, without its port."""
    if host.startswith("["):
        return host.partition("]")[0].removeprefix("[").lower()
    return host.partition(":")[0].lower().rstrip(".")
