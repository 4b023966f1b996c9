"""The schema of people's attributes: /schema.json of the repo `attributes`, with the type of each column of all tables
there, committed with them.

Only the standard library: the command imports this at every deployment. Knows no tables.
"""

import json
from collections.abc import Mapping

SCHEMA = "schema.json"
DIRECTORY = "tables"
SUFFIX = ".parquet"
"""Of the tables in the directory."""

LABEL = "label"
"""The attribute that the repo of labels gives."""

TEXT, INTEGER, NUMBER, BOOLEAN, DATE = "text", "integer", "number", "boolean", "date"
TYPES = (TEXT, INTEGER, NUMBER, BOOLEAN, DATE)
"""The types of attributes. A date is one with a time of day, and without a time zone."""

DERIVED = {"folder": TEXT, "name": TEXT, "aspect": NUMBER, "anywhere": TEXT}
"""Attributes that follow from other facts of a file, and their types. anywhere: its path and all its texts that people
read, a line each."""

_FORMAT = 1

AGAIN = "put tables with `lookalike attributes add`, and no file by other means"
"""The remedy for a repo that no command wrote so."""


def format_schema(types: Mapping[str, str]) -> bytes:
    """The content of /schema.json: one of TYPES for each attribute."""
    columns = {name: {"type": type} for name, type in types.items()}
    return (json.dumps({"format": _FORMAT, "columns": columns}, indent=1, sort_keys=True) + "\n").encode("ascii")


def parse_schema(content: bytes) -> dict[str, str]:
    """The type of each attribute. Raises ValueError for anything that `format_schema` does not write."""
    try:
        stated = json.loads(content)
        types = {str(name): each["type"] for name, each in stated["columns"].items()}
        if stated["format"] == _FORMAT and {*types.values()} <= {*TYPES}:
            return types
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise ValueError(f"{SCHEMA} of attributes is not one that this version of lookalike wrote: {AGAIN}")
