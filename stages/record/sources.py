"""The sources of pictures: the true paths, hashes and facts of their files. Reads no files."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple, TypeVar

RAW, LOSSLESS, LOSSY, PALETTE = "raw", "lossless", "lossy", "palette"
"""The codings of pictures: samples of a sensor; all pixels as they were; nearly; or in at most 256 colours."""

_SourceT = TypeVar("_SourceT")


class Source(NamedTuple):
    """A file that a picture came from: its true path (not PFS's escaped one) and the sha256 (64 hex) of its bytes.

    width, height: of the picture in the file, upright, in pixels; of a RAW file's preview. bytes: the size of the file,
    archive member or record. taken: the camera's date, YYYY-MM-DDTHH:MM:SS without a time zone, "" if the file does not
    have one. coding: RAW, LOSSLESS, LOSSY or PALETTE, the way in which the file holds its pixels. encoder: 8 hex
    digits, equal for files that one program or camera writes in the same way. pixels: see `content`. camera, lens: the
    camera's make and model, and the lens's model, as text for people, "" if the file does not tell. latitude,
    longitude: of the place where the picture was taken, in degrees, south and west below zero; both None if the file
    does not tell. format: the file's kind, such as JPEG, as stages.record.file_kinds names it. The facts follow from
    the bytes; 0 or "" where a test does not care.
    """

    path: str
    sha256: str
    width: int = 0
    height: int = 0
    bytes: int = 0
    taken: str = ""
    coding: str = ""
    encoder: str = ""
    pixels: str = ""
    camera: str = ""
    lens: str = ""
    latitude: float | None = None
    longitude: float | None = None
    format: str = ""

    @property
    def content(self) -> str:
        """Equal for exact copies, and for no others: files of equal bytes, or of equal pixels at full size where these
        are all that both files show, see stages.decode.pixel_hash."""
        return self.pixels or self.sha256

    @property
    def form(self) -> tuple[int, int, str]:
        """What a file has in common with others that one program or camera writes."""
        return self.width, self.height, self.encoder


def unite(*groups: Iterable[Source]) -> tuple[Source, ...]:
    """All sources of the groups, each once, sorted by path."""
    return tuple(sorted({source for group in groups for source in group}))


def may_be_copies(one: Collection[Source], other: Collection[Source], turned: bool) -> bool:
    """Whether files of pictures that look alike may be copies of each other. turned: whether they lie differently.

    They are not if a camera took them at different times. They are as likely two shots of one scene, or two pages of
    one form, if all are of one size and written in the same way, and lie alike: then nothing shows that one was made
    from the other.
    """
    dates, others = ({source.taken for source in sources} - {""} for sources in (one, other))
    if dates and others and dates.isdisjoint(others):
        return False
    return turned or any(not mine.encoder or mine.form != theirs.form for mine in one for theirs in other)


def paths(sources: Iterable[Source]) -> list[str]:
    """The distinct true paths of the sources, in their order."""
    return list(dict.fromkeys(source.path for source in sources))


def chosen(thumbnails: Iterable[tuple[Iterable[Source], _SourceT]]) -> _SourceT:
    """The thumbnail of a picture, or its place, from those of several packs or parts, each with the picture's sources
    there.

    Files of different sizes can give one id. Its thumbnail is that of the source with the smallest hash, a function of
    the set of its sources, in whatever order they come and go.
    """
    return min(thumbnails, key=lambda each: min((source.sha256 for source in each[0]), default=""))[1]
