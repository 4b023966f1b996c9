"""The fields of a specification against Pachyderm's messages: unknown names, wrong types, wrong spellings of values.

Reading leaves a specification with names in snake_case, without what could not be understood, so that all else in it
can be checked too.
"""

import difflib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import json_format
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.specifications.findings import Flaw, Level
from speclang.fields import Field, dotted

REQUEST = pps_pb2.CreatePipelineRequest.DESCRIPTOR
_SERVERS_OWN = frozenset({"update", "reprocess", "spec_commit", "details_json", "dry_run"})
"""Fields of the request that are the client's to fill in, not the specification's."""

_NEWER = {"maximum_expected_uptime": "2.8"}
"""Fields that newer versions have, and that lookalike, which sends 2.7's messages, cannot send."""

_KINDS = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "text in double quotes",
    "bytes": "text in base64",
}
_NOTHING = {"bool": False, "int": 0, "float": 0, "str": "", "bytes": ""}
_LIST = "a list in square brackets"
_WELL_KNOWN = {
    "google.protobuf.Duration": 'a time with its unit, such as "300s"',
    "google.protobuf.Timestamp": 'a time such as "2026-01-31T12:00:00Z"',
    "google.protobuf.Int64Value": "a whole number",
}


@dataclass(slots=True)
class Fields:
    """What was read: the canonical value, its flaws, and the way that each canonical field was written."""

    value: dict[str, Any]
    flaws: list[Flaw] = field(default_factory=list)
    written: dict[Field, Field] = field(default_factory=dict)


def read(value: Any, patch: bool = False) -> Fields:
    """The fields of a CreatePipelineRequest in protojson, where null is as good as nothing, or of a merge patch to one,
    where it takes a field away."""
    reading = _Reading(patch)
    reading.result.value = reading.message(value, REQUEST, (), ())
    return reading.result


class _Reading:
    def __init__(self, patch: bool) -> None:
        self.result = Fields({})
        self._patch = patch

    def message(self, value: Any, descriptor: Any, at: Field, written: Field) -> Any:
        self.result.written[at] = written
        if descriptor.full_name in _WELL_KNOWN:
            return self._well_known(value, descriptor, at)
        if not isinstance(value, dict):
            return self._wrong_type(at, "an object in braces", value)
        known = {name: each for each in descriptor.fields for name in (each.name, each.json_name)}
        read: dict[str, Any] = {}
        for name, member in value.items():
            if name not in known:
                self.result.written[(*at, name)] = (*written, name)
                self.result.flaws.append(_unknown(name, known, descriptor, at))
            elif known[name].name in read:
                self.result.written[(*at, name)] = (*written, name)
                self._flaw("type", (*at, name), "is given twice, in two spellings", "keep one of them")
            elif descriptor is REQUEST and known[name].name in _SERVERS_OWN:
                self.result.written[(*at, name)] = (*written, name)
                self._flaw("field", (*at, name), "is not for specifications: the client sets it", "take it out")
            else:
                read[known[name].name] = self._member(member, known[name], (*at, known[name].name), (*written, name))
        for choice in descriptor.oneofs:
            for second in [each.name for each in choice.fields if each.name in read][1:]:
                self._flaw("field", (*at, second), "excludes another field that is given here", "keep one of them")
                del read[second]
        return {name: each for name, each in read.items() if each is not _LEFT_OUT}

    def _member(self, value: Any, known: Any, at: Field, written: Field) -> Any:
        self.result.written[at] = written
        if value is None:
            return None if self._patch else _LEFT_OUT
        if known.message_type is not None and known.message_type.GetOptions().map_entry:
            if not isinstance(value, dict):
                return self._wrong_type(at, "an object in braces", value)
            return self._map(value, known.message_type.fields_by_name["value"], at, written)
        if known.label == known.LABEL_REPEATED:
            if not isinstance(value, list):
                return self._wrong_type(at, _LIST, value)
            items = [self._one(each, known, (*at, place), (*written, place)) for place, each in enumerate(value)]
            # What could not be understood keeps its place, so that the others keep theirs.
            nothing: Any = {} if known.message_type is not None else _NOTHING[_kind(known)]
            return [nothing if each is _LEFT_OUT else each for each in items]
        return self._one(value, known, at, written)

    def _map(self, value: Mapping[str, Any], entry: Any, at: Field, written: Field) -> dict[str, Any]:
        read: dict[str, Any] = {}
        for name, each in value.items():
            self.result.written[(*at, name)] = (*written, name)
            taken_away = each is None and self._patch
            read[name] = None if taken_away else self._one(each, entry, (*at, name), (*written, name))
        return {name: each for name, each in read.items() if each is not _LEFT_OUT}

    def _one(self, value: Any, known: Any, at: Field, written: Field) -> Any:
        self.result.written[at] = written
        if known.message_type is not None:
            return self.message(value, known.message_type, at, written)
        if known.enum_type is not None:
            return self._choice(value, known.enum_type, at)
        kind = _kind(known)
        if _is(kind, value, _range(known)):
            return value
        return self._wrong_type(at, _KINDS[kind], value)

    def _choice(self, value: Any, enum: Any, at: Field) -> Any:
        if value in enum.values_by_name:
            return value
        if isinstance(value, int) and value in enum.values_by_number:
            return enum.values_by_number[value].name
        names = [each.name for each in enum.values]
        spelt = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", value).upper() if isinstance(value, str) else ""
        if spelt in names:
            self._flaw("enum", at, f'"{value}" is Kubernetes\' spelling', f'write Pachyderm\'s: "{spelt}"')
            return spelt
        near = difflib.get_close_matches(spelt, names, n=1)
        mend = f'did you mean "{near[0]}"?' if near else f"one of {', '.join(names)}"
        self._flaw("enum", at, f"{_shown(value)} is no value of this field", mend)
        return near[0] if near else _LEFT_OUT

    def _well_known(self, value: Any, descriptor: Any, at: Field) -> Any:
        try:
            json_format.ParseDict(value, descriptor._concrete_class())
        except (json_format.ParseError, TypeError, ValueError, AttributeError):
            return self._wrong_type(at, _WELL_KNOWN[descriptor.full_name], value)
        return value

    def _wrong_type(self, at: Field, wanted: str, value: Any) -> Any:
        mend = (
            "write it as text that holds JSON" if at and at[-1] in ("pod_spec", "pod_patch") else _meant(wanted, value)
        )
        self._flaw("type", at, f"must be {wanted}, not {_shown(value)}", mend)
        return _LEFT_OUT if at else {}

    def _flaw(self, rule: str, at: Field, why: str, mend: str) -> None:
        self.result.flaws.append(Flaw(Level.ERROR, rule, at, why, mend))


_LEFT_OUT = object()
"""Stands for what could not be understood."""


def _unknown(name: str, known: Mapping[str, Any], descriptor: Any, at: Field) -> Flaw:
    why = "Pachyderm knows no such field here and would drop it without a word"
    if descriptor is REQUEST and name in _NEWER:
        why = f"only Pachyderm {_NEWER[name]} and later know this field, and lookalike sends 2.7's"
        return Flaw(Level.ERROR, "field", (*at, name), why, "take it out, or create this pipeline with pachctl")
    camel = any(character.isupper() for character in name)
    names = sorted({each.json_name if camel else each.name for each in known.values()})
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.7)
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
    elsewhere = [dotted(path) for path in _homes(REQUEST) if path[-1] == snake]
    if near:
        mend = f'did you mean "{near[0]}"?'
    elif elsewhere:
        mend = f"it belongs in {elsewhere[0]}"
    else:
        mend = f"known here: {', '.join(names)}" if len(names) <= 12 else "take it out"
    return Flaw(Level.ERROR, "field", (*at, name), why, mend)


def _homes(descriptor: Any, at: Field = ()) -> Iterator[Field]:
    """The ways to the fields of a message and of those in it, not of those that hold themselves."""
    for each in descriptor.fields:
        yield (*at, each.name)
        inner = each.message_type
        if inner is not None and not inner.GetOptions().map_entry and inner.name != "Input" and len(at) < 2:
            yield from _homes(inner, (*at, each.name))


def _kind(known: Any) -> str:
    return {
        known.CPPTYPE_BOOL: "bool",
        known.CPPTYPE_DOUBLE: "float",
        known.CPPTYPE_FLOAT: "float",
        known.CPPTYPE_STRING: "bytes" if known.type == known.TYPE_BYTES else "str",
    }.get(known.cpp_type, "int")


def _range(known: Any) -> tuple[int, int]:
    """The least whole number of a field, and the one after the greatest."""
    unsigned = known.cpp_type in (known.CPPTYPE_UINT32, known.CPPTYPE_UINT64)
    bits = 32 if known.cpp_type in (known.CPPTYPE_INT32, known.CPPTYPE_UINT32) else 64
    return (0, 1 << bits) if unsigned else (-(1 << (bits - 1)), 1 << (bits - 1))


def _is(kind: str, value: Any, bounds: tuple[int, int]) -> bool:
    """Whether protojson takes a value for a field of a kind."""
    if kind == "bool" or isinstance(value, bool):
        return kind == "bool" and isinstance(value, bool)
    if kind in ("str", "bytes"):
        return isinstance(value, str)
    if kind == "float":
        return _is_number(value)
    if isinstance(value, str):
        return re.fullmatch(r"-?[0-9]+", value) is not None and bounds[0] <= int(value) < bounds[1]
    return isinstance(value, int | float) and value == int(value) and bounds[0] <= value < bounds[1]


def _is_number(value: Any) -> bool:
    try:
        return isinstance(value, int | float | str) and math.isfinite(float(value))
    except (ValueError, OverflowError):
        return False


def _meant(wanted: str, value: Any) -> str:
    """What somebody may have wanted to write who wrote something of another type; "" where that cannot be guessed."""
    if wanted == _KINDS["bool"] and str(value).lower() in ("true", "false", "yes", "no"):
        return f"write {'true' if str(value).lower() in ('true', 'yes') else 'false'}"
    if wanted == _WELL_KNOWN["google.protobuf.Duration"] and _is_number(value):
        return f'write "{value}s"'
    if wanted == _KINDS["str"] and isinstance(value, int | float):
        return f"write {json.dumps(json.dumps(value))}"
    if wanted == _LIST and isinstance(value, str):
        return f"write {json.dumps([value])}"
    return ""


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 40 else f'"{value[:37]}…"'
    if value is None:
        return "null"
    return {dict: "an object", list: "a list", bool: str(value).lower()}.get(type(value), str(value))
