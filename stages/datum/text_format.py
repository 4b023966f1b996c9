"""Plain words and numbers for people: counts, distances, printable text, and the notes that a result sheet opens with.

Only the standard library: the command imports this at every start, so nothing here may import NumPy or Arrow. Knows no
answers and no markup; whoever shows the text escapes it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

NOTHING_TO_ASK = "This entry has no pictures to search for."
EMPTY_LIBRARY = "The library is empty, so there are no pictures to compare with yet."


def limited(limits: Mapping[str, Any]) -> str:
    """The note on a question's filter, where and max_distance, "" if it has none of them."""
    forms = {"filter": "matching {}", "where": "with {}", "max_distance": "within a distance of {:g}"}
    said = " and ".join(form.format(limits[name]) for name, form in forms.items() if name in limits)
    return said and f"Only library pictures {said} are listed."


def small_library(size: int, k: int) -> str:
    """The note on a library of `size` pictures, fewer than the k neighbours asked for."""
    return f"The library has only {counted(size, 'picture', 'pictures')}, but {k} neighbours were requested."


def distance(value: float) -> str:
    """A distance for people: four significant digits, and "0" only for exactly 0."""
    if value == 0:
        return "0"
    if value >= 1000:
        return f"{value:.0f}"
    if value < 0.001:
        return f"{value:.2e}"
    return f"{value:#.4g}".rstrip(".")


def place(latitude: float, longitude: float) -> str:
    """A place on Earth, given in degrees, to about a metre: "52.51861° N, 13.37611° E"."""
    north, east = "N" if latitude >= 0 else "S", "E" if longitude >= 0 else "W"
    return f"{abs(latitude):.5f}° {north}, {abs(longitude):.5f}° {east}"


def counted(count: int, one: str, many: str) -> str:
    """The number with its noun: "1 picture", "2,000 pictures"."""
    return f"{count:,} {one if count == 1 else many}"


def first_of(names: Sequence[str], most: int, between: str = ", ") -> str:
    """The first names, so many at most, and the number of the others: "a, b and 2 more"."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{between.join(names[:most])}{more}"


def enumerated(names: Sequence[str]) -> str:
    """Names in a sentence: "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def rounded_time(seconds: float) -> str:
    """A time in words, rounded up: "about 20 s", "about 3 min", "about 2 hours"."""
    if seconds <= 60:
        return f"about {10 * (int(seconds) // 10 + 1)} s"
    if seconds <= 3600:
        return f"about {int(seconds / 60) + 1} min"
    return f"about {counted(int(seconds / 3600) + 1, 'hour', 'hours')}"


def size(number: int) -> str:
    """A number of bytes for people: "27.6 kB", "1.2 GB"."""
    if number < 1000:
        return counted(number, "byte", "bytes")
    value, unit = number / 1000, "kB"
    for larger in ("MB", "GB", "TB"):
        if value < 999.95:
            break
        value, unit = value / 1000, larger
    return f"{value:,.1f} {unit}"


def first_line(error: BaseException) -> str:
    """The first line of a library's error, without the advice to programmers after it; its type if it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def visible(text: str) -> str:
    """The text with a symbol or a code for each character that cannot be shown, or would change the text's
    direction."""
    return _CONTROL.sub(_coded, text)


def _coded(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)  # its control picture
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a file name that is not UTF-8, as Python represents it
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{{{code:x}}}"
