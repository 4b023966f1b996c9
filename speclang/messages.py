"""A message in protojson, read strictly: unknown names, wrong types and values, fields given twice, all at once.

Reading leaves a value in one spelling, without the parts that could not be understood, so that all else in it can be
checked too.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache
from typing import Any

from speclang import scalars
from speclang.descriptors import EnumShape as EnumShape, FieldShape, MessageShape
from speclang.field_paths import FieldPath, dotted
from speclang.scalars import LIST, OBJECT, ScalarKind

_REPEATED = 3  # a label of descriptor.proto
_EMBEDDED_JSON = ("pod_spec", "podSpec", "pod_patch", "podPatch")


class MessageRule(Enum):
    """A rule that a part of a message breaks."""

    UNKNOWN = auto()
    REPEATED = auto()
    EXCLUSIVE = auto()
    TYPE = auto()
    CHOICE = auto()


@dataclass(frozen=True, slots=True)
class MessageProblem:
    """A part of a message that is wrong: why, as the predicate of a sentence, and the fix, as a phrase, "" if none is
    known."""

    rule: MessageRule
    at: FieldPath
    why: str
    fix: str = ""


@dataclass(slots=True)
class ParsedMessage:
    """The value in one spelling, its problems, and the way that each field of it was written."""

    value: dict[str, Any] = field(default_factory=dict)
    problems: list[MessageProblem] = field(default_factory=list)
    written: dict[FieldPath, FieldPath] = field(default_factory=dict)


def read(value: Any, shape: MessageShape, camel: bool = False, patch: bool = False) -> ParsedMessage:
    """Reads the JSON of a message. Names come out in snake_case or, with `camel`, in lowerCamelCase.

    Null is as good as nothing; in a merge patch it removes a field, so with `patch` it stays.
    """
    reader = _MessageReader(shape, camel, patch)
    reader.result.value = reader.message(value, shape, (), ())
    return reader.result


class _MessageReader:
    def __init__(self, shape: MessageShape, camel: bool, patch: bool) -> None:
        self.result = ParsedMessage()
        self._shape = shape
        self._camel = camel
        self._patch = patch

    def message(self, value: Any, shape: MessageShape, at: FieldPath, written: FieldPath) -> Any:
        self.result.written[at] = written
        if shape.full_name in scalars.WELL_KNOWN:
            return self._scalar(value, scalars.WELL_KNOWN[shape.full_name], at)
        if not isinstance(value, dict):
            return self._wrong_type(at, OBJECT, value)
        known = _by_name(shape)
        read: dict[str, Any] = {}
        for name, member in value.items():
            here = (*at, self._name(known[name]) if name in known else name)
            if name not in known:
                self.result.written[here] = (*written, name)
                self.result.problems.append(self._unknown(name, shape, here))
            elif here[-1] in read:
                self.result.written[(*at, name)] = (*written, name)
                self._problem(MessageRule.REPEATED, (*at, name), "is given twice, in two spellings", "keep one of them")
            else:
                read[self._name(known[name])] = self._member(member, known[name], here, (*written, name))
        for choice in shape.oneofs:
            given = [name for name in map(self._name, choice.fields) if read.get(name) is not None]
            for second in given[1:]:
                self._problem(
                    MessageRule.EXCLUSIVE,
                    (*at, second),
                    "excludes another field that is given here",
                    "keep one of them",
                )
                del read[second]
        return {name: each for name, each in read.items() if each is not _LEFT_OUT}

    def _name(self, known: FieldShape) -> str:
        return known.json_name if self._camel else known.name

    def _member(self, value: Any, known: FieldShape, at: FieldPath, written: FieldPath) -> Any:
        self.result.written[at] = written
        if value is None:
            return None if self._patch else _LEFT_OUT
        if known.message_type is not None and known.message_type.GetOptions().map_entry:
            if not isinstance(value, dict):
                return self._wrong_type(at, OBJECT, value)
            return self._map(value, known.message_type.fields_by_name["value"], at, written)
        if known.label == _REPEATED:
            if not isinstance(value, list):
                return self._wrong_type(at, LIST, value)
            items = [self._one(each, known, (*at, place), (*written, place)) for place, each in enumerate(value)]
            # An item that could not be understood keeps its place, so that the others keep theirs.
            return [_nothing(known) if each is _LEFT_OUT else each for each in items]
        return self._one(value, known, at, written)

    def _map(self, value: Mapping[str, Any], entry: FieldShape, at: FieldPath, written: FieldPath) -> dict[str, Any]:
        read: dict[str, Any] = {}
        for name, each in value.items():
            self.result.written[(*at, name)] = (*written, name)
            removed = each is None and self._patch
            read[name] = None if removed else self._one(each, entry, (*at, name), (*written, name))
        return {name: each for name, each in read.items() if each is not _LEFT_OUT}

    def _one(self, value: Any, known: FieldShape, at: FieldPath, written: FieldPath) -> Any:
        self.result.written[at] = written
        if known.message_type is not None:
            return self.message(value, known.message_type, at, written)
        if known.enum_type is not None:
            return self._choice(value, known.enum_type, at)
        return self._scalar(value, scalars.OF_TYPE[known.type], at)

    def _scalar(self, value: Any, kind: ScalarKind, at: FieldPath) -> Any:
        return value if kind.accepts(value) else self._wrong_type(at, kind.wanted, value)

    def _choice(self, value: Any, enum: EnumShape, at: FieldPath) -> Any:
        if isinstance(value, str) and value in enum.values_by_name:
            return value
        if isinstance(value, int) and not isinstance(value, bool) and value in enum.values_by_number:
            return enum.values_by_number[value].name
        names = [each.name for each in enum.values]
        spelt = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", value).upper() if isinstance(value, str) else ""
        if spelt in names:
            self._problem(
                MessageRule.CHOICE, at, f'is "{value}", Kubernetes\' spelling', f'write Pachyderm\'s: "{spelt}"'
            )
            return spelt
        near = difflib.get_close_matches(spelt, names, n=1)
        fix = f'did you mean "{near[0]}"?' if near else f"write one of {', '.join(names)}"
        self._problem(
            MessageRule.CHOICE, at, f"is {scalars.shown(value)}, which is not a valid value of this field", fix
        )
        return near[0] if near else _LEFT_OUT

    def _wrong_type(self, at: FieldPath, wanted: str, value: Any) -> Any:
        embedded = bool(at) and at[-1] in _EMBEDDED_JSON
        fix = "write it as text that holds JSON" if embedded else scalars.correction(wanted, value)
        self._problem(MessageRule.TYPE, at, f"must be {wanted}, not {scalars.shown(value)}", fix)
        return _LEFT_OUT if at else {}

    def _unknown(self, name: str, shape: MessageShape, at: FieldPath) -> MessageProblem:
        # A name in lowerCamelCase is corrected in lowerCamelCase.
        camel = any(character.isupper() for character in name)
        names = sorted(each.json_name if camel else each.name for each in shape.fields)
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.7)
        snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
        elsewhere = [dotted(path) for path in _homes(self._shape) if path[-1] == snake]
        if near:
            fix = f'did you mean "{near[0]}"?'
        elif elsewhere:
            fix = f"it belongs in {elsewhere[0]}"
        else:
            fix = f"known here: {', '.join(names)}" if len(names) <= 12 else ""
        return MessageProblem(MessageRule.UNKNOWN, at, "is an unknown field", fix)

    def _problem(self, rule: MessageRule, at: FieldPath, why: str, fix: str) -> None:
        self.result.problems.append(MessageProblem(rule, at, why, fix))


_LEFT_OUT = object()
"""Stands for a part that could not be understood."""


@cache  # as many shapes as the schema has
def _by_name(shape: MessageShape) -> Mapping[str, FieldShape]:
    """The fields of a message by both of their names."""
    return {name: each for each in shape.fields for name in (each.name, each.json_name)}


def _nothing(known: FieldShape) -> Any:
    if known.message_type is not None:
        return {}
    return "" if known.enum_type is not None else scalars.OF_TYPE[known.type].nothing


def _homes(shape: MessageShape, at: FieldPath = ()) -> Iterator[FieldPath]:
    """The ways to the fields of a message and of those in it, except of messages that contain themselves."""
    for each in shape.fields:
        yield (*at, each.name)
        inner = each.message_type
        if inner is not None and not inner.GetOptions().map_entry and not _contains_itself(inner) and len(at) < 2:
            yield from _homes(inner, (*at, each.name))


def _contains_itself(shape: MessageShape) -> bool:
    inner = (each.message_type for each in shape.fields)
    return any(each is not None and each.full_name == shape.full_name for each in inner)
