"""Messages as protojson: the pps room takes specifications in this form, and filters read replies in it. Knows no
message by name."""

from collections.abc import Callable
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message

from localpachd.api.messages.jq_filters import compile_filter


def as_mapping(message: Message) -> dict[str, Any]:
    """A message as protojson with names in snake_case."""
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def as_json(message: Message) -> dict[str, Any]:
    """A message as protojson with names in lowerCamelCase, as specifications are written."""
    return json_format.MessageToDict(message)


def message_filter(jq: str) -> Callable[[Message], bool]:
    """The test of messages that a request's jqFilter asks for. It reads them as `pachctl ... --raw` prints them."""
    if not jq.strip():
        return lambda message: True
    passes = compile_filter(jq)
    return lambda message: passes(as_mapping(message))
