"""The way to a part of a JSON document, and how people read it."""

import json
import re

FieldPath = tuple[str | int, ...]
"""Names of members and places in lists, from the outside in."""


def dotted(field: FieldPath) -> str:
    """A field as people read it: `input.cross[0].pfs.glob`; names that hold dots or the like stand in brackets."""
    text = ""
    for part in field:
        if isinstance(part, int):
            text += f"[{part}]"
        elif re.fullmatch(r"[\w-]+", part):
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part)}]"
    return text
