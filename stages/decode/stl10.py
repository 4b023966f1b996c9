"""STL-10's binary picture files told apart by name and size, and the names of their records.

Only the standard library: the command imports this at every start. Knows no pixels: see stages.decode.stl10_records.
"""

from __future__ import annotations

import re

SIDE = 96  # pixels
RECORD = 3 * SIDE * SIDE  # bytes of one picture
_RECORD_NAME = re.compile(r"\.bin/\d{6}\Z", re.IGNORECASE)


def is_named_so(name: str) -> bool:
    """Whether a file is named as STL-10's are. The format has no magic number."""
    return name.lower().endswith(".bin") or is_record_name(name)


def record_name(file: str, number: int) -> str:
    """The name of a record, in its file or on its own: "train_X.bin/000123". number: counted from 0."""
    return f"{file}/{number:06}"


def is_record_name(name: str) -> bool:
    """Whether a file is named as a record is."""
    return _RECORD_NAME.search(name) is not None


def holds_pictures(name: str, size: int) -> bool:
    """Whether a file is one of STL-10's by its name and size in bytes, whatever its first bytes.

    Records are plain pixels: some of 100,000 begin like an archive or like another kind of picture.
    """
    return size > 0 and is_named_so(name) and problem(name, size) is None


def problem(name: str, size: int) -> str | None:
    """Why a file of that name and size in bytes does not hold STL-10 pictures, for the user; None if it does."""
    if name.lower().endswith("_y.bin"):
        return "labels of STL-10, not pictures"
    if size % RECORD:
        return f"not whole STL-10 pictures: {size:,} bytes is not a multiple of {RECORD:,}"
    if is_record_name(name) and size > RECORD:
        return f"not one STL-10 picture: {size:,} bytes, not {RECORD:,}"
    return None
