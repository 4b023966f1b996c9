"""Calls of every method of a server with random requests, and their answers judged. Knows no method's meaning."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import grpc
from google.protobuf import text_format
from google.protobuf.message import Message

from localpachd.api.schema.schema import SERVICES, message_class
from tests.fuzz.messages import Messages

_NOT_OF_PACHD = ("pachyderm.worker.Worker",)
_DEADLINE = 0.4
"""Seconds of a call; those that wait take all of it."""
_REPLIES = 20
_RARE = (
    "Delete",
    "Drop",
    "Squash",
    "Clear",
    "Dump",
    "Profile",
    "Trace",
    "Binary",
    "Fsck",
    "SetLogLevel",
    "RunLoadTest",
)
_RARELY = 0.05

# Texts of Python and of its libraries, which no client of Pachyderm knows.
_FOREIGN = (
    "metadata size exceeds",
    "repo None",
    "Exception calling application",
    "Exception iterating",
    "Traceback",
    "object has no attribute",
    "NoneType",
    "int too",
    "Python int",
    "unhashable",
    "not subscriptable",
    "argument must be",
    "unexpected keyword",
    "object is not",
    "codec can't",
    "sqlite",
    "not supported between",
    "list index",
    "invalid literal",
    "cannot convert",
    "out of range for",
    "Errno",
    "must be in range",
    "timestamp out of",
    "missing 1 required",
    "<class",
    "object at 0x",
)


def is_foreign(details: str) -> bool:
    """Whether the text of an answer is one of Python or of its libraries."""
    return any(word in details for word in _FOREIGN)


@dataclass(frozen=True, slots=True)
class Method:
    """A call of a service: its descriptor, and its name as `service/Method`."""

    name: str
    descriptor: Any


def methods() -> list[Method]:
    """Every call of the API."""
    return [
        Method(f"{name}/{call.name}", call)
        for name, service in sorted(SERVICES.items())
        for call in service.methods
        if name not in _NOT_OF_PACHD
    ]


@dataclass
class Fuzzer:
    """Makes calls one after the other. `faults` has an entry for each kind of wrong answer, with a request that it came
    for; `codes` counts the answers."""

    channel: grpc.Channel
    seed: int
    faults: dict[tuple[str, str], str] = field(default_factory=dict)
    codes: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._unserved: set[str] = set()
        self.messages = Messages(self.seed)
        self._methods = methods()
        self._stubs = {each.name: _stub(self.channel, each) for each in self._methods}

    def step(self) -> None:
        """Makes one call."""
        chance = self.messages.chance
        method = chance.choice(self._methods)
        while (method.name in self._unserved or any(word in method.name for word in _RARE)) and (
            chance.random() > _RARELY
        ):
            method = chance.choice(self._methods)
        kind = method.descriptor.input_type
        number = chance.choice((0, 1, 2, 3, 5)) if method.descriptor.client_streaming else 1
        self.call(method.name, [self.messages.request(method.name, kind) for _ in range(number)])

    def call(self, name: str, requests: Sequence[Message]) -> list[Message]:
        """Makes one call of a method, learns from its answer, and judges it."""
        stub, streams = self._stubs[name]
        try:
            answer = stub(iter(requests) if streams[0] else requests[0], timeout=_DEADLINE)
            replies = list(_first(answer)) if streams[1] else [answer]
        except grpc.RpcError as error:
            self._judge(name, requests, error.code(), error.details() or "")
            return []
        self.codes["OK"] += 1
        self._unserved.discard(name)
        for each in requests:
            self.messages.accept(name, each)
            self.messages.learn(each)
        for each in replies:
            self.messages.learn(each)
        return replies

    def _judge(self, name: str, requests: Sequence[Message], code: grpc.StatusCode, details: str) -> None:
        self.codes[code.name] += 1
        if code is grpc.StatusCode.UNIMPLEMENTED:
            self._unserved.add(name)
        wrong = (
            code is grpc.StatusCode.INTERNAL
            or is_foreign(details)
            or (code is grpc.StatusCode.UNKNOWN and not details.strip())
        )
        if wrong:
            shown = " | ".join(text_format.MessageToString(each, as_one_line=True) for each in requests)
            self.faults.setdefault((name, f"{code.name}: {details[:160]}"), shown[:3000])


def _stub(channel: grpc.Channel, method: Method) -> tuple[Callable[..., Any], tuple[bool, bool]]:
    kinds: dict[tuple[bool, bool], Callable[..., Callable[..., Any]]] = {
        (False, False): channel.unary_unary,
        (False, True): channel.unary_stream,
        (True, False): channel.stream_unary,
        (True, True): channel.stream_stream,
    }
    call = method.descriptor
    streams = (call.client_streaming, call.server_streaming)
    request, reply = message_class(call.input_type), message_class(call.output_type)
    stub = kinds[streams](
        f"/{method.name}", request_serializer=request.SerializeToString, response_deserializer=reply.FromString
    )
    return stub, streams


def _first(answer: Any) -> Iterator[Message]:
    """The first replies of a stream, which is cancelled after them."""
    yield from islice(answer, _REPLIES)
    answer.cancel()
