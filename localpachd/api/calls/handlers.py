"""gRPC's handlers: they connect the calls of a service with the methods of a class, and look at requests before these
do. Interceptors put something around them. Knows no service by name."""

import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from inspect import signature
from tempfile import SpooledTemporaryFile
from typing import Any, NoReturn, Protocol, TypeAlias, TypeVar

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message

from localpachd.api.calls import message_checks
from localpachd.api.calls.cancellation import CallContext, while_active
from localpachd.api.schema.schema import SERVICES, message_class

AnyHandler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
"""gRPC's handler of a call."""

# gRPC's own names: see `doors.parked_calls`.
_NON_BLOCKING, _POOL = "experimental_non_blocking", "experimental_thread_pool"

_KINDS: Mapping[tuple[bool, bool], Callable[..., AnyHandler]] = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}


Method = TypeVar("Method", bound=Callable[..., object])

_MEMORY = 1 << 20
"""Bytes of a listing that are kept in memory; of most listings these are all."""

_LENGTH = struct.Struct(">I")


class BehaviourFactory(Protocol):
    """Makes handlers of calls that wait without a thread; see `parked_calls.ParkedCalls`."""

    def behaviour(self, method: str, steps: Callable[..., Iterator[Any]]) -> Callable[..., None]: ...


def waits(method: Method) -> Method:
    """Marks a method of a servicer that is written in steps: it yields its replies, and a ChangeFeed wherever it
    waits."""
    method.waits = True  # type: ignore[attr-defined]
    return method


def lists(method: Method) -> Method:
    """Marks a method of a servicer that yields its replies from one snapshot of the database: all are collected before
    the first is sent, since the database's log of changes grows for as long as a snapshot is held."""
    method.lists = True  # type: ignore[attr-defined]
    return method


def add_service(server: grpc.Server, service: str, servicer: object, waiting: BehaviourFactory | None = None) -> None:
    """Adds the service of this full name to a server, with every call for which `servicer` has a method: of the request
    and, if it needs it, the `context`. A reply is a message, None for an empty one, or, encoded by hand, bytes. A
    request with values that no message may hold is refused. `waiting` is needed for methods that wait."""
    handlers = {
        call.name: _handler(f"{service}/{call.name}", call, getattr(servicer, call.name), waiting)
        for call in SERVICES[service].methods
        if hasattr(servicer, call.name)
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))


def _handler(name: str, call: MethodDescriptor, method: Callable[..., Any], waiting: BehaviourFactory | None) -> Any:
    behaviour = method if "context" in signature(method).parameters else lambda request, context: method(request)
    decode = message_class(call.input_type).FromString
    check = message_checks.check_of(call.input_type)
    if hasattr(method, "waits"):
        assert waiting is not None
        steps = behaviour if check is None else _checking(check, behaviour)
        return method_handler(waiting.behaviour(name, steps), (False, True), decode, _encoded)
    if hasattr(method, "lists"):
        behaviour = _spooled(behaviour)
    made = method_handler(behaviour, (call.client_streaming, call.server_streaming), decode, _encoded)
    return made if check is None else checked(made, check)


def _checking(check: Callable[[Any], None], steps: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    def checked_steps(request: Any, context: CallContext) -> Iterator[Any]:
        check(request)
        yield from steps(request, context)

    return checked_steps


def is_parked(handler: AnyHandler) -> bool:
    """Whether the handler of a call does not block; its third argument is a function that sends replies."""
    return getattr(handler.unary_stream, _NON_BLOCKING, False)


def watched(handler: AnyHandler, look: Callable[[CallContext], None]) -> AnyHandler:
    """The same handler, one that does not block, which first lets `look` see the call."""
    inner: Any = handler.unary_stream

    def behaviour(request: Any, context: CallContext, send: Any) -> Any:
        look(context)
        return inner(request, context, send)

    return parked(handler, behaviour)


def parked(handler: AnyHandler, behaviour: Callable[..., object]) -> AnyHandler:
    """The handler of the same call, one that does not block, with another behaviour that does not either."""
    for name in (_NON_BLOCKING, _POOL):
        setattr(behaviour, name, getattr(handler.unary_stream, name, None))
    return replaced(handler, behaviour)


def _encoded(reply: Message | bytes | None) -> bytes:
    if reply is None:
        return b""
    return reply if isinstance(reply, bytes) else reply.SerializeToString()


def method_handler(
    behaviour: Callable[..., object],
    streams: tuple[bool, bool],
    deserialize: Callable[[bytes], Any] | None,
    serialize: Callable[[Any], bytes] | None,
) -> AnyHandler:
    """gRPC's handler of a call; `streams` says whether its request and its reply are streams."""
    return _KINDS[streams](behaviour, request_deserializer=deserialize, response_serializer=serialize)


def serialized(handler: AnyHandler, change: Callable[[Any], Any]) -> AnyHandler:
    """The handler of the same call, whose replies are changed before they are encoded."""
    inner: Any = handler.response_serializer
    streams = (handler.request_streaming, handler.response_streaming)
    return method_handler(
        _behaviour(handler), streams, handler.request_deserializer, lambda reply: inner(change(reply))
    )


def replaced(handler: AnyHandler, behaviour: Callable[..., object]) -> AnyHandler:
    """The handler of the same call with another behaviour."""
    streams = (handler.request_streaming, handler.response_streaming)
    return method_handler(behaviour, streams, handler.request_deserializer, handler.response_serializer)


def _behaviour(handler: AnyHandler) -> Callable[[Any, CallContext], Any]:
    return handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream  # type: ignore[return-value]


def checked(handler: AnyHandler, check: Callable[[Any], None]) -> AnyHandler:
    """The handler of the same call with a check of each request, which raises what the call is to fail with."""

    def passed(request: object) -> object:
        check(request)
        return request

    behaviour = _behaviour(handler)
    if handler.request_streaming:
        # Not a generator: that would end for good, and hide that the client has gone.
        return replaced(handler, lambda requests, context: behaviour(map(passed, requests), context))
    return replaced(handler, lambda request, context: behaviour(passed(request), context))


def enclosed(handler: AnyHandler, block: Callable[[CallContext], AbstractContextManager[object]]) -> AnyHandler:
    """The handler of the same call, one that blocks, which runs within `block(context)`."""
    behaviour = _behaviour(handler)

    def single(request: object, context: CallContext) -> object:
        with block(context):
            return behaviour(request, context)

    def stream(request: object, context: CallContext) -> Iterator[object]:
        with block(context):
            yield from behaviour(request, context)

    return replaced(handler, stream if handler.response_streaming else single)


def refusal(code: grpc.StatusCode, text: str) -> AnyHandler:
    """The handler of a call that reads nothing and fails."""

    def refuse(request: object, context: CallContext) -> NoReturn:
        context.abort(code, text)
        raise AssertionError("abort returns never")

    return method_handler(refuse, (True, True), None, None)


class CallInterceptor(grpc.ServerInterceptor):
    """Puts something around the handlers of the calls that are served."""

    def intercept_service(
        self,
        continuation: "Callable[[grpc.HandlerCallDetails], AnyHandler | None]",
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "AnyHandler | None":
        found = continuation(handler_call_details)
        return None if found is None else self.around(found, handler_call_details.method.lstrip("/"))

    def around(self, handler: AnyHandler, method: str) -> AnyHandler:
        """The handler to use instead of that of a method ("service/Method")."""
        raise NotImplementedError


def _spooled(behaviour: Callable[[Any, CallContext], Iterator[Any]]) -> Callable[[Any, CallContext], Iterator[bytes]]:
    """The behaviour of a call with a stream of replies, which is over, whatever it holds, before the first reply is
    taken. They wait in memory and, if there are many, in a file without a name. Raises OSError if the disk is full."""

    def collected(request: Any, context: CallContext) -> Iterator[bytes]:
        with SpooledTemporaryFile(_MEMORY) as file:
            for reply in while_active(context, behaviour(request, context)):
                data = _encoded(reply)
                file.write(_LENGTH.pack(len(data)) + data)
            file.seek(0)
            while head := file.read(_LENGTH.size):
                yield file.read(*_LENGTH.unpack(head))

    return collected
