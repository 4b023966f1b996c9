"""Masks: the pictures that a block of `images` still holds and the library no longer has.

A block never changes, so removing or replacing one of its pictures decodes and computes nothing: the mask of the block,
a file of the repo `masks`, names the picture, and partition leaves it out. Masks lie in the buckets of the parts that
they concern. Any other top-level file or directory of `images` may have a mask in the same way. Only the standard
library: the command imports this.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from stages.record import part_names

REPO = "masks"
"""The repo of masks."""

DIRECTORY = "library"
"""The directory of all masks, above the two levels of buckets (see stages.record.part_names.directory)."""

SUFFIX = ".jsonl"

GLOB = f"/{DIRECTORY}/*/*/*{SUFFIX}"
"""The paths of all masks."""


def path(entry: str) -> str:
    """The path in `masks` of the mask of a block, or of another top-level entry. entry: its path in `images`."""
    source = part_names.source_name(entry.strip("/"))
    return f"/{DIRECTORY}/{part_names.directory(source)}/{source}{SUFFIX}"


def source_of(mask: str) -> str:
    """The name of the packs (stages.record.part_names.source_name) that a mask is about. mask: its path."""
    return mask.rpartition("/")[2].removesuffix(SUFFIX)


def content(names: Iterable[str]) -> bytes:
    """A mask's bytes. names: the true paths that it hides. A mask without names is not written, but deleted."""
    return "".join(f"{json.dumps(name)}\n" for name in sorted(set(names))).encode("ascii")


def parse(content: bytes) -> frozenset[str]:
    """The true paths that a mask hides, from its bytes, whose lines may be in any order. Raises ValueError, with the
    number of the line, for anything but JSON strings."""
    return frozenset(_name(line, number) for number, line in enumerate(content.splitlines(), start=1) if line.strip())


def read_bucket(directory: Path) -> dict[str, frozenset[str]]:
    """The true paths that the masks of a bucket hide, by the name of the packs, see `source_of`. Raises ValueError,
    which names the mask, as `parse` does."""
    found = {}
    for file in sorted(directory.rglob(f"*{SUFFIX}")):
        try:
            found[source_of(file.name)] = parse(file.read_bytes())
        except ValueError as error:
            raise ValueError(f"the mask {file.name}: {error}") from error
    return found


def _name(line: bytes, number: int) -> str:
    try:
        name = json.loads(line)
    except (ValueError, RecursionError):
        name = None
    if not isinstance(name, str):
        raise ValueError(f"line {number} is not a JSON string: {line[:80]!r}")
    return name
