"""Replies that are collected before the first is sent: some in memory, the rest in a file. Knows no service."""

import struct
from collections.abc import Callable, Iterator
from tempfile import SpooledTemporaryFile
from typing import Any

import grpc

from localpachd.api.calls import cancellation

_MEMORY = 1 << 20
"""Bytes of a listing that are kept in memory; of most listings these are all."""

_LENGTH = struct.Struct(">I")


def spool_replies(
    behaviour: Callable[[Any, grpc.ServicerContext], Iterator[Any]], encode: Callable[[Any], bytes]
) -> Callable[[Any, grpc.ServicerContext], Iterator[bytes]]:
    """The behaviour of a call with a stream of replies, which is over, whatever it holds, before the first reply is
    taken. The file has no name, and is gone when the call ends. Raises OSError if the disk is full."""

    def collected(request: Any, context: grpc.ServicerContext) -> Iterator[bytes]:
        with SpooledTemporaryFile(_MEMORY) as file:
            for reply in cancellation.while_active(context, behaviour(request, context)):
                data = encode(reply)
                file.write(_LENGTH.pack(len(data)) + data)
            file.seek(0)
            while head := file.read(_LENGTH.size):
                yield file.read(*_LENGTH.unpack(head))

    return collected
