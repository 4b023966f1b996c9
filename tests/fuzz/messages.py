"""Random messages of any type, made from descriptors alone. Parts of messages that were seen before come again, so that
requests name what exists; a message that was accepted is the start of others. Calls nothing."""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from localpachd.api.schema.schema import message_class
from tests.fuzz.values import Values

_DEPTH = 5
_KEPT = 30
"""Messages that are kept of each type."""

# A server runs these, so they are chosen among harmless ones.
_COMMANDS: Sequence[list[str]] = (["true"], ["false"], ["sh"], [], ["no-such-command"], [""], ["a\0b"])
_LINES = ("cp -r /pfs/* /pfs/out/", "exit 3", "true", "", "\0")


class Messages:
    """Makes messages, reproducibly for one seed and one history of what it was shown."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self._values = Values(self.chance)
        self._parts: dict[str, list[Message]] = defaultdict(list)
        self._accepted: dict[str, list[Message]] = defaultdict(list)

    def learn(self, message: Message) -> None:
        """Keeps the parts and texts of a message for later ones."""
        for field, value in message.ListFields():
            for each in _values(field, value):
                if isinstance(each, Message):
                    self._keep(self._parts[each.DESCRIPTOR.full_name], each)
                    self.learn(each)
                elif isinstance(each, str) and len(each) < 200:
                    self._values.remember(field.name, each)

    def accept(self, method: str, request: Message) -> None:
        """Keeps a request that a call accepted."""
        self._keep(self._accepted[method], request)

    def request(self, method: str, kind: Descriptor) -> Any:
        """A request of a call: a new one, or an accepted one, changed at a few places."""
        accepted = self._accepted.get(method)
        if accepted and self.chance.random() < 0.6:
            made = self._copy(self.chance.choice(accepted))
            for _ in range(self.chance.randrange(3)):
                self._change(made)
            return made
        return self.message(kind)

    def message(self, kind: Descriptor, depth: int = 0) -> Any:
        """A message of a type."""
        made = message_class(kind)()
        density = self.chance.choice((0.1, 0.3, 0.5, 0.8))
        for field in kind.fields:
            if self.chance.random() < density:
                self._fill(made, field, depth)
        return made

    def _fill(self, message: Any, field: FieldDescriptor, depth: int) -> None:
        if field.full_name == "pps_v2.Transform.cmd":
            message.cmd[:] = self.chance.choice(_COMMANDS)
        elif field.full_name in ("pps_v2.Transform.stdin", "pps_v2.Transform.err_stdin"):
            getattr(message, field.name)[:] = [self.chance.choice(_LINES)]
        elif field.full_name == "pps_v2.Transform.err_cmd":
            message.err_cmd[:] = self.chance.choice(_COMMANDS)
        elif field.label == FieldDescriptor.LABEL_REPEATED:
            self._fill_repeated(message, field, depth)
        elif field.message_type is not None:
            self._fill_part(getattr(message, field.name), field.message_type, depth)
        else:
            setattr(message, field.name, self._values.scalar(field))

    def _fill_repeated(self, message: Any, field: FieldDescriptor, depth: int) -> None:
        number = self.chance.choice((0, 1, 1, 2, 3))
        target = getattr(message, field.name)
        kind = field.message_type
        if kind is not None and kind.GetOptions().map_entry:
            value = kind.fields_by_name["value"]
            for _ in range(number):
                key = self._values.scalar(kind.fields_by_name["key"])
                if value.message_type is None:
                    target[key] = self._values.scalar(value)
                elif depth < _DEPTH:
                    self._fill_part(target[key], value.message_type, depth)
        elif kind is None:
            target.extend(self._values.scalar(field) for _ in range(number))
        elif depth < _DEPTH:
            for _ in range(number):
                self._fill_part(target.add(), kind, depth)

    def _fill_part(self, target: Message, kind: Descriptor, depth: int) -> None:
        known = self._parts.get(kind.full_name)
        target.SetInParent()
        if known and self.chance.random() < 0.6:
            target.MergeFromString(self.chance.choice(known).SerializeToString())
        elif depth < _DEPTH:
            target.MergeFromString(self.message(kind, depth + 1).SerializeToString())

    def _change(self, message: Message) -> None:
        """Changes one field, here or in a part."""
        parts = [each for each in _parts(message) if self.chance.random() < 0.7]
        if parts and self.chance.random() < 0.7:
            self._change(self.chance.choice(parts))
            return
        fields = message.DESCRIPTOR.fields
        if fields:
            field = self.chance.choice(fields)
            message.ClearField(field.name)
            if self.chance.random() < 0.8:
                self._fill(message, field, 2)

    def _keep(self, kept: list[Message], message: Message) -> None:
        if message.ByteSize() > 20_000:
            return
        copy = self._copy(message)
        if len(kept) < _KEPT:
            kept.append(copy)
        else:
            kept[self.chance.randrange(_KEPT)] = copy

    @staticmethod
    def _copy(message: Message) -> Message:
        copy = type(message)()
        copy.CopyFrom(message)
        return copy


def _values(field: FieldDescriptor, value: Any) -> Iterator[Any]:
    if field.label != FieldDescriptor.LABEL_REPEATED:
        yield value
    elif field.message_type is not None and field.message_type.GetOptions().map_entry:
        yield from value.values()
    else:
        yield from value


def _parts(message: Message) -> Iterator[Message]:
    for field, value in message.ListFields():
        for each in _values(field, value):
            if isinstance(each, Message):
                yield each
