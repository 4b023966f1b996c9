"""The values that every message may hold, whatever its call: refuses numbers of enums that have no name, and lengths of
time and moments that are not valid. Knows no service.

protobuf itself lets all of these through: enums are open, and a Duration is any two numbers.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from localpachd.errors import InvalidArgument

_DURATION, _TIMESTAMP = "google.protobuf.Duration", "google.protobuf.Timestamp"
_NANOS = 1_000_000_000
_LONGEST = ((1 << 63) - 1) // _NANOS
"""Seconds of the longest Duration: Pachyderm counts nanoseconds in 64 bits."""
_FIRST, _LAST = -62_135_596_800, 253_402_300_799
"""Seconds of the moments that protobuf allows: the years 1 to 9999."""

ValueCheck = Callable[[Any, str], None]
"""Raises InvalidArgument for a value of a field of this name."""


@cache
def check_of(kind: Descriptor) -> Callable[[Any], None] | None:
    """The check of messages of a type, which raises InvalidArgument; None if all of them are valid."""
    if not _is_concerned(kind):
        return None
    return lambda message: _check(message, "")


def _check(message: Message, where: str) -> None:
    checks = _checks(message.DESCRIPTOR)
    for field, value in message.ListFields():
        check = checks.get(field.number)
        if check is None:
            continue
        name = f"{where}{field.name}"
        if field.label != FieldDescriptor.LABEL_REPEATED:
            check(value, name)
            continue
        for each in _members(field, value):
            check(each, name)


def _members(field: FieldDescriptor, value: Any) -> Iterable[Any]:
    entry = field.message_type is not None and field.message_type.GetOptions().map_entry
    return value.values() if entry else value  # type: ignore[no-any-return]


@cache
def _checks(kind: Descriptor) -> Mapping[int, ValueCheck]:
    """The checks of the fields of a message, by number."""
    found = {each.number: _field_check(each) for each in kind.fields}
    return {number: check for number, check in found.items() if check is not None}


def _field_check(field: FieldDescriptor) -> ValueCheck | None:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        field = field.message_type.fields_by_name["value"]
    kind = field.message_type
    if field.enum_type is not None:
        return _enum_check(field)
    if kind is None:
        return None
    if kind.full_name == _DURATION:
        return _check_duration
    if kind.full_name == _TIMESTAMP:
        return _check_moment
    return (lambda value, where: _check(value, f"{where}.")) if _is_concerned(kind) else None


def _enum_check(field: FieldDescriptor) -> ValueCheck:
    kind = field.enum_type
    names = ", ".join(each.name for each in kind.values)

    def check(value: int, where: str) -> None:
        if value not in kind.values_by_number:
            raise InvalidArgument(f"{where}: {value} is not a valid {kind.name}: use one of {names}")

    return check


def _check_duration(value: Any, where: str) -> None:
    seconds, nanos = value.seconds, value.nanos
    if abs(seconds) >= _LONGEST or abs(nanos) >= _NANOS or seconds * nanos < 0:
        raise InvalidArgument(
            f"{where}: {seconds} s and {nanos} ns are not a valid duration: use at most {_LONGEST - 1} s and "
            f"{_NANOS - 1} ns, both of one sign"
        )


def _check_moment(value: Any, where: str) -> None:
    if not _FIRST <= value.seconds <= _LAST or not 0 <= value.nanos < _NANOS:
        raise InvalidArgument(
            f"{where}: {value.seconds} s and {value.nanos} ns since 1970 are not a valid time: use the years 1 to 9999"
        )


@cache
def _is_concerned(kind: Descriptor) -> bool:
    """Whether messages of a type, or of one of its parts, may hold a value that needs a check."""
    seen: set[str] = set()
    pending = [kind]
    while pending:
        each = pending.pop()
        if each.full_name in seen:
            continue
        seen.add(each.full_name)
        if each.full_name in (_DURATION, _TIMESTAMP) or _has_enum(each):
            return True
        pending += [field.message_type for field in each.fields if field.message_type is not None]
    return False


def _has_enum(kind: Descriptor) -> bool:
    # Struct and its like hold any value.
    return not kind.full_name.startswith("google.protobuf.") and any(field.enum_type for field in kind.fields)
