"""gRPC's handlers: they connect the calls of a service with the methods of a class. Knows no service by name."""

from collections.abc import Callable
from typing import Any

import grpc

from localpachd.api.schema import SERVICES, message_class

_KINDS = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}


def add_service(server: grpc.Server, service: str, servicer: Any) -> None:
    """Adds a service of this full name to a server: every call for which `servicer` has a method. A reply is a message
    or, where it was encoded by hand, bytes."""
    handlers = {
        call.name: method_handler(
            getattr(servicer, call.name),
            (call.client_streaming, call.server_streaming),
            message_class(call.input_type).FromString,
            _encoded,
        )
        for call in SERVICES[service].methods
        if hasattr(servicer, call.name)
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))


def _encoded(reply: Any) -> bytes:
    encoded: bytes = reply if isinstance(reply, bytes) else reply.SerializeToString()
    return encoded


def method_handler(
    behaviour: Callable[[Any, Any], Any],
    streams: tuple[bool, bool],
    deserialize: Callable[[bytes], Any] | None,
    serialize: Callable[[Any], bytes] | None,
) -> Any:
    """gRPC's handler of a call; `streams` says whether its request and its reply are."""
    return _KINDS[streams](behaviour, request_deserializer=deserialize, response_serializer=serialize)
