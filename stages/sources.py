"""The sources of pictures: the true paths, hashes and facts of their files. Reads no files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

Shown = TypeVar("Shown")


class Source(NamedTuple):
    """A file that a picture came from: its true path (not PFS's escaped one) and the sha256 (64 hex) of its bytes.

    width, height: of the picture in the file, upright, in pixels; of a RAW file's preview. bytes: the size of the file,
    archive member or record. taken: the camera's date, YYYY-MM-DDTHH:MM:SS without a time zone, "" if the file does not
    have one. The facts follow from the bytes; 0 where a test does not care.
    """

    path: str
    sha256: str
    width: int = 0
    height: int = 0
    bytes: int = 0
    taken: str = ""


def unite(*groups: Iterable[Source]) -> tuple[Source, ...]:
    """All sources of the groups, each once, sorted by path."""
    return tuple(sorted({source for group in groups for source in group}))


def paths(sources: Iterable[Source]) -> list[str]:
    """The distinct true paths of the sources, sorted."""
    return sorted({source.path for source in sources})


def chosen(thumbnails: Iterable[tuple[Iterable[Source], Shown]]) -> Shown:
    """The thumbnail of a picture, or its place, from those of several packs or parts, each with the picture's sources
    there.

    Files of different sizes can give one id. Its thumbnail is that of the source with the smallest hash, a function of
    the set of its sources, in whatever order they come and go.
    """
    return min(thumbnails, key=lambda each: min((source.sha256 for source in each[0]), default=""))[1]
