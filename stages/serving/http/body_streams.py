"""The bodies of requests and responses on their way: neither too large nor too slow. Knows no routes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Send

from stages.serving.answer.load_limiter import ServiceLimits
from stages.serving.follow.refusals import Refusal

_PIECE = 1 << 18
"""Bytes of a response that wait for a slow client."""

_CLOSE = (b"connection", b"close")


class StalledError(Exception):
    """A client that does not take its response."""


class RequestStream:
    """The body of a request. state: the request's, whose `lingers` hears once the rest is read for nothing."""

    def __init__(self, receive: Receive, bounds: ServiceLimits, headers: Headers, state: dict[str, Any]) -> None:
        self._receive = receive
        self._state = state
        self._bounds = bounds
        self._got = 0
        self._begun = asyncio.get_running_loop().time()
        self.complete = "transfer-encoding" not in headers and headers.get("content-length", "0") == "0"

    def announced(self, length: str) -> None:
        """Hears of its Content-Length, "" without one. Raises Refusal for a body that is too large."""
        bounds = self._bounds
        if length.isascii() and length.isdigit() and (len(length) > 18 or int(length) > bounds.body_bytes):
            raise _too_large(bounds)

    async def receive(self) -> Message:
        """The next message of ASGI. Raises Refusal for a body that is too large or too slow."""
        if self.complete:
            return await self._receive()  # the end of the connection
        bounds, now = self._bounds, asyncio.get_running_loop().time()
        until = self._begun + min(bounds.idle + self._got / bounds.rate, bounds.whole)
        try:
            async with asyncio.timeout_at(min(now + bounds.idle, until)):
                message = await self._receive()
        except TimeoutError as error:
            raise Refusal(408, "too-slow", "the request's body came too slowly") from error
        self._got += len(message.get("body", b""))
        self.complete = _is_last(message)
        if self._got > bounds.body_bytes:
            raise _too_large(bounds)
        return message

    async def linger(self) -> None:
        """Reads on for a while: a client that still sends when the connection is closed may never see the response."""
        if lingers := self._state.get("lingers"):
            lingers()
        left = self._bounds.discarded
        try:
            async with asyncio.timeout(self._bounds.linger):
                while not self.complete and left >= 0:
                    message = await self._receive()
                    left -= len(message.get("body", b""))
                    self.complete = _is_last(message)
        except TimeoutError:
            return


class ResponseStream:
    """The response to a request. headers: those that it has unless it has its own. One that begins before the whole
    body is there closes the connection, after the rest has been read."""

    def __init__(self, incoming: RequestStream, send: Send, headers: Mapping[str, str], bounds: ServiceLimits) -> None:
        self._incoming = incoming
        self._send = send
        self._headers = headers
        self._bounds = bounds

    async def send(self, message: Message) -> None:
        """Sends a message of ASGI, a large body in pieces. Raises StalledError if the client does not take it."""
        if message["type"] == "http.response.start":
            await self._send({**message, "headers": self._completed(message.get("headers", []))})
            return
        body = memoryview(message.get("body", b""))
        more = message.get("more_body", False)
        for start in range(_PIECE, len(body), _PIECE):
            await self._piece(body[start - _PIECE : start], True)
        last = body[(max(len(body), 1) - 1) // _PIECE * _PIECE :]
        if not self._incoming.complete and not more:
            await self._piece(last, True)
            await self._incoming.linger()
            last = body[:0]
        await self._piece(last, more)

    def _completed(self, given: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        there = {name for name, _ in given}
        added = [(name.encode(), value.encode()) for name, value in self._headers.items()]
        if not self._incoming.complete:
            added.append(_CLOSE)
        return [*given, *(each for each in added if each[0] not in there)]

    async def _piece(self, body: memoryview, more: bool) -> None:
        message: Message = {"type": "http.response.body", "body": bytes(body), "more_body": more}
        try:
            async with asyncio.timeout(self._bounds.idle):
                await self._send(message)
        except TimeoutError as error:
            raise StalledError from error


def _is_last(message: Message) -> bool:
    return message["type"] != "http.request" or not message.get("more_body", False)


def _too_large(bounds: ServiceLimits) -> Refusal:
    words = f"the request has more than {bounds.body_bytes >> 20} MiB: send smaller or fewer pictures"
    return Refusal(413, "too-large", words)
