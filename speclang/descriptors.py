"""The shape of a message, as strict reading needs it: protobuf's descriptors have it, and nothing here imports them."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class EnumValueShape(Protocol):
    """A value of an enum."""

    @property
    def name(self) -> str: ...


class EnumShape(Protocol):
    """An enum."""

    @property
    def values(self) -> Sequence[EnumValueShape]: ...
    @property
    def values_by_name(self) -> Mapping[str, EnumValueShape]: ...
    @property
    def values_by_number(self) -> Mapping[int, EnumValueShape]: ...


class FieldShape(Protocol):
    """A field of a message."""

    @property
    def name(self) -> str: ...
    @property
    def json_name(self) -> str: ...
    @property
    def type(self) -> int: ...
    @property
    def label(self) -> int: ...
    @property
    def message_type(self) -> "MessageShape | None": ...
    @property
    def enum_type(self) -> EnumShape | None: ...


class OneOfShape(Protocol):
    """Fields of which a message has at most one."""

    @property
    def fields(self) -> Sequence[FieldShape]: ...


class MessageShape(Protocol):
    """A message."""

    @property
    def full_name(self) -> str: ...
    @property
    def fields(self) -> Sequence[FieldShape]: ...
    @property
    def fields_by_name(self) -> Mapping[str, FieldShape]: ...
    @property
    def oneofs(self) -> Sequence[OneOfShape]: ...
    def GetOptions(self) -> Any: ...
    def __hash__(self) -> int: ...
