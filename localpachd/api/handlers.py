"""gRPC's handlers: they connect the calls of a service with the methods of a class, and look at requests before these
do. Knows no service by name."""

from collections.abc import Callable, Mapping
from typing import Any, Never, TypeVar

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message

from localpachd.api import wellformed
from localpachd.api.schema import SERVICES, message_class

Request = TypeVar("Request")
Reply = TypeVar("Reply")

_KINDS: Mapping[tuple[bool, bool], Callable[..., "grpc.RpcMethodHandler[Any, Any]"]] = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}


def add_service(server: grpc.Server, service: str, servicer: object) -> None:
    """Adds the service of this full name to a server, with every call for which `servicer` has a method. A reply is a
    message or, encoded by hand, bytes. A request with values that no message may hold is refused."""
    handlers = {
        call.name: _handler(call, getattr(servicer, call.name))
        for call in SERVICES[service].methods
        if hasattr(servicer, call.name)
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))


def _handler(call: MethodDescriptor, behaviour: Callable[[Never, grpc.ServicerContext], object]) -> Any:
    made: grpc.RpcMethodHandler[Any, Any] = method_handler(
        behaviour,
        (call.client_streaming, call.server_streaming),
        message_class(call.input_type).FromString,
        _encoded,
    )
    check = wellformed.check_of(call.input_type)
    return made if check is None else checked(made, check)


def _encoded(reply: Message | bytes) -> bytes:
    return reply if isinstance(reply, bytes) else reply.SerializeToString()


def method_handler(
    behaviour: Callable[[Never, grpc.ServicerContext], object],
    streams: tuple[bool, bool],
    deserialize: Callable[[bytes], Request] | None,
    serialize: Callable[[Reply], bytes] | None,
) -> "grpc.RpcMethodHandler[Request, Reply]":
    """gRPC's handler of a call; `streams` says whether its request and its reply are streams."""
    return _KINDS[streams](behaviour, request_deserializer=deserialize, response_serializer=serialize)


def replaced(
    handler: "grpc.RpcMethodHandler[Request, Reply]", behaviour: Callable[[Never, grpc.ServicerContext], object]
) -> "grpc.RpcMethodHandler[Request, Reply]":
    """The handler of the same call with another behaviour."""
    return method_handler(
        behaviour,
        (handler.request_streaming, handler.response_streaming),
        handler.request_deserializer,
        handler.response_serializer,
    )


def checked(
    handler: "grpc.RpcMethodHandler[Request, Reply]", check: Callable[[Request], None]
) -> "grpc.RpcMethodHandler[Request, Reply]":
    """The handler of the same call with a check of each request, which raises what the call is to fail with."""

    def passed(request: Request) -> Request:
        check(request)
        return request

    inner: Callable[[Any, grpc.ServicerContext], object] | None = (
        handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
    )
    assert inner is not None
    behaviour = inner
    if handler.request_streaming:
        # Not a generator: that would end for good, and hide that the client has gone.
        return replaced(handler, lambda requests, context: behaviour(map(passed, requests), context))
    return replaced(handler, lambda request, context: behaviour(passed(request), context))
