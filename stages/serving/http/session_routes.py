"""The routes that give and take the cookie of those who have the token."""

from __future__ import annotations

import asyncio
import time

from fastapi import FastAPI, Request, Response

from stages.files.question import parse_json
from stages.serving.follow.configuration import ServiceConfiguration
from stages.serving.follow.refusals import Refusal
from stages.serving.http import request_body
from stages.serving.http.access_control import COOKIE_SECONDS, cookie_name, equal, session
from stages.serving.http.json_responses import AsciiJSONResponse

_TOKEN_BYTES = 1 << 12
"""Most bytes of a request that signs in."""


class SessionRoutes:
    """guess: seconds after which a wrong token is refused."""

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
        if not isinstance(token, str) or not secret or not equal(token, secret):
            await asyncio.sleep(self._guess)  # so that guessing takes long
            raise Refusal(401, "wrong-token", "this is not the token of this service")
        secure = bool(self._configuration.certificate or self._configuration.proxy)
        response = AsciiJSONResponse({})
        name, value = cookie_name(request.headers.get("host", "")), session(secret, int(time.time()) + COOKIE_SECONDS)
        response.set_cookie(name, value, COOKIE_SECONDS, httponly=True, samesite="strict", secure=secure)
        return response

    async def sign_out(self, request: Request) -> Response:
        """Takes the cookie back."""
        response = AsciiJSONResponse({})
        response.delete_cookie(cookie_name(request.headers.get("host", "")))
        return response
