"""Lists of names as text files: one name a line, and names that a line cannot hold as JSON strings.

Only the standard library: the command imports this at every start. Knows no pictures.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

_UNFIT = re.compile(r"\A[\s\"]|\s\Z|[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def lines(names: Iterable[str]) -> Iterator[str]:
    """A line for each name, without its end, of characters that UTF-8 has. A name with a control character or an
    unpaired surrogate, and one that begins with a quote or begins or ends with white space, becomes a JSON string."""
    return (json.dumps(name) if _UNFIT.search(name) else name for name in names)


def parse(text: str) -> Iterator[str]:
    """The inverse of `lines`, of the text of all lines with their ends; empty ones are skipped.

    Raises ValueError with the number of a line that begins with a quote and is not a JSON string.
    """
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        written = line.removesuffix("\r")
        if not written:
            continue
        name = _unquoted(written, number) if written.startswith('"') else written
        if name:
            yield name


def _unquoted(written: str, number: int) -> str:
    try:
        name = json.loads(written)
    except json.JSONDecodeError:
        name = None
    if not isinstance(name, str):
        raise ValueError(f"line {number} begins with a quote, but is not a JSON string: {written[:80]}")
    return name
