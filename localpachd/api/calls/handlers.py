"""gRPC's handlers: they connect the calls of a service with the methods of a class, and look at requests before these
do. Knows no service by name."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message

from localpachd.api.calls import message_checks
from localpachd.api.calls.reply_spool import spool_replies
from localpachd.api.schema.schema import SERVICES, message_class

Request = TypeVar("Request")
Reply = TypeVar("Reply")

# gRPC's own names: see `parking`.
_NON_BLOCKING, _POOL = "experimental_non_blocking", "experimental_thread_pool"

_KINDS: Mapping[tuple[bool, bool], Callable[..., "grpc.RpcMethodHandler[Any, Any]"]] = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}


Method = TypeVar("Method", bound=Callable[..., object])


class BehaviourFactory(Protocol):
    """Makes handlers of calls that wait without a thread; see `parked_calls.ParkedCalls`."""

    def behaviour(self, method: str, steps: Callable[..., Iterator[Any]]) -> Callable[..., None]: ...


def waits(method: Method) -> Method:
    """Marks a method of a servicer that is written in steps: it yields its replies, and a Feed wherever it waits."""
    method.waits = True  # type: ignore[attr-defined]
    return method


def lists(method: Method) -> Method:
    """Marks a method of a servicer that yields its replies from one snapshot of the database: all are collected before
    the first is sent, since the database's log of changes grows for as long as a snapshot is held."""
    method.lists = True  # type: ignore[attr-defined]
    return method


def add_service(server: grpc.Server, service: str, servicer: object, waiting: BehaviourFactory | None = None) -> None:
    """Adds the service of this full name to a server, with every call for which `servicer` has a method. A reply is a
    message or, encoded by hand, bytes. A request with values that no message may hold is refused. `waiting` is needed
    for methods that wait."""
    handlers = {
        call.name: _handler(f"{service}/{call.name}", call, getattr(servicer, call.name), waiting)
        for call in SERVICES[service].methods
        if hasattr(servicer, call.name)
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))


def _handler(
    method: str, call: MethodDescriptor, behaviour: Callable[..., Any], waiting: BehaviourFactory | None
) -> Any:
    decode = message_class(call.input_type).FromString
    check = message_checks.check_of(call.input_type)
    if hasattr(behaviour, "waits"):
        assert waiting is not None
        steps = behaviour if check is None else _checking(check, behaviour)
        return method_handler(waiting.behaviour(method, steps), (False, True), decode, _encoded)
    if hasattr(behaviour, "lists"):
        behaviour = spool_replies(behaviour, _encoded)
    made: grpc.RpcMethodHandler[Any, Any] = method_handler(
        behaviour, (call.client_streaming, call.server_streaming), decode, _encoded
    )
    return made if check is None else checked(made, check)


def _checking(check: Callable[[Any], None], steps: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    def checked_steps(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        check(request)
        yield from steps(request, context)

    return checked_steps


def is_parked(handler: "grpc.RpcMethodHandler[Any, Any]") -> bool:
    """Whether the handler of a call does not block; its third argument is a function that sends replies."""
    return getattr(handler.unary_stream, _NON_BLOCKING, False)


def watched(
    handler: "grpc.RpcMethodHandler[Request, Reply]", look: Callable[[grpc.ServicerContext], None]
) -> "grpc.RpcMethodHandler[Request, Reply]":
    """The same handler, one that does not block, which first lets `look` see the call."""
    inner: Any = handler.unary_stream

    def behaviour(request: Any, context: grpc.ServicerContext, send: Any) -> Any:
        look(context)
        return inner(request, context, send)

    return parked(handler, behaviour)


def parked(
    handler: "grpc.RpcMethodHandler[Request, Reply]", behaviour: Callable[..., object]
) -> "grpc.RpcMethodHandler[Request, Reply]":
    """The handler of the same call, one that does not block, with another behaviour that does not either."""
    for name in (_NON_BLOCKING, _POOL):
        setattr(behaviour, name, getattr(handler.unary_stream, name, None))
    return replaced(handler, behaviour)


def _encoded(reply: Message | bytes) -> bytes:
    return reply if isinstance(reply, bytes) else reply.SerializeToString()


def method_handler(
    behaviour: Callable[..., object],
    streams: tuple[bool, bool],
    deserialize: Callable[[bytes], Request] | None,
    serialize: Callable[[Reply], bytes] | None,
) -> "grpc.RpcMethodHandler[Request, Reply]":
    """gRPC's handler of a call; `streams` says whether its request and its reply are streams."""
    return _KINDS[streams](behaviour, request_deserializer=deserialize, response_serializer=serialize)


def replaced(
    handler: "grpc.RpcMethodHandler[Request, Reply]", behaviour: Callable[..., object]
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
