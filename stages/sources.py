"""The sources of pictures: the true paths and hashes of their files. Reads no files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Source(NamedTuple):
    """A file that a picture came from: its true path (not PFS's escaped one) and the sha256 (64 hex) of its bytes."""

    path: str
    sha256: str


def unite(*groups: Iterable[Source]) -> tuple[Source, ...]:
    """All sources of the groups, each once, sorted by path."""
    return tuple(sorted({source for group in groups for source in group}))


def paths(sources: Iterable[Source]) -> list[str]:
    """The distinct true paths of the sources, sorted."""
    return sorted({source.path for source in sources})
