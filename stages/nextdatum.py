"""Owns NextDatum, the one call that a batched process makes of its Pachyderm worker, with its two messages as bytes.

Knows gRPC, and none of Pachyderm's clients: importing one takes longer than all else that a process does before it asks
for its first datum. Protobuf's encoding: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Callable

import grpc

_METHOD = "/pachyderm.worker.Worker/NextDatum"
_FIELD, _TEXT = 1, 2
"""Both messages have one field, `error` or `env`, whose number is 1; its wire type says that a length comes first."""

_FIXED = {1: 8, 5: 4}
"""Bytes of the wire types of a fixed length."""


def caller(channel: grpc.Channel) -> Callable[[str], list[str]]:
    """The call on a channel: takes what went wrong with the last datum ("" for nothing), waits for the next one, and
    returns the `env` of the reply. Raises grpc.RpcError."""
    call: Callable[[str], list[str]] = channel.unary_unary(
        _METHOD, request_serializer=encode_request, response_deserializer=decode_reply
    )
    return call


def encode_request(error: str) -> bytes:
    """A NextDatumRequest."""
    text = error.encode()
    return bytes([_FIELD << 3 | _TEXT]) + _varint(len(text)) + text if text else b""


def decode_reply(message: bytes) -> list[str]:
    """The `env` of a NextDatumResponse. Raises ValueError for what is no message."""
    env = []
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        if key & 7 == 0:
            _, at = _read_varint(message, at)
            continue
        if key & 7 == _TEXT:
            length, at = _read_varint(message, at)
        elif key & 7 in _FIXED:
            length = _FIXED[key & 7]
        else:
            raise ValueError(f"a NextDatumResponse with a field of wire type {key & 7}")
        if at + length > len(message):
            raise ValueError("a NextDatumResponse that ends in a field")
        if key == _FIELD << 3 | _TEXT:
            env.append(message[at : at + length].decode())
        at += length
    return env


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    """The number at a place, and the place after it."""
    value = shift = 0
    while at < len(message):
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError("a NextDatumResponse that ends in a number")
