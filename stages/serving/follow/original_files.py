"""The files that pictures of the library came from: files of `images`, members of blocks and archives, STL-10 records,
and files at URLs.

A file is found by the name of its source and recognised by its hash. Decodes nothing but records of STL-10.
"""

from __future__ import annotations

import hashlib
import io
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO

from PIL import Image

from stages.datum.contract import StageError
from stages.datum.file_cache import FileCache
from stages.decode import stl10, stl10_records
from stages.decode.archives.archive_member import ArchiveMember, BadArchive, BadMember
from stages.decode.archives.archive_reader import members
from stages.files import remote_files
from stages.record import block_names, pfs_names, picture_containers, url_records
from stages.record.block_names import BlockMember
from stages.record.file_kinds import HEAD, FileKind, kind_of
from stages.record.file_limits import LIMITS
from stages.record.sources import Source
from stages.record.url_records import OtherBytesError, UrlRecord
from stages.serving.follow.backbone_pool import fetch_file
from stages.serving.follow.pachyderm_client import Absent, FileFacts, PachydermClient

REPO, FETCHED = "images", "fetch"
"""The repos with files of pictures; in the second are only blocks."""

_PIECE = 1 << 18
_IN_MEMORY = 8 << 20
"""Bytes of a file that are held in memory; more are held in a temporary file."""

_READERS = 8
"""Lists of blocks that are read at a time."""

_KNOWN = 4096
"""Files of which is remembered that they are those of their sources."""

_MEDIA_TYPES = {
    FileKind.JPEG: "image/jpeg",
    FileKind.PNG: "image/png",
    FileKind.WEBP: "image/webp",
    FileKind.GIF: "image/gif",
    FileKind.BMP: "image/bmp",
    FileKind.TIFF: "image/tiff",
    FileKind.HEIC: "image/heic",
    FileKind.AVIF: "image/avif",
    FileKind.JPEG_2000: "image/jp2",
    FileKind.NETPBM: "image/x-portable-anymap",
    FileKind.TGA: "image/x-tga",
    FileKind.ICO: "image/vnd.microsoft.icon",
    FileKind.QOI: "image/qoi",
}


class SourceGoneError(Exception):
    """The file of a source cannot be had any more; the text is a sentence for people."""


@dataclass(frozen=True)
class OriginalFile:
    """A picture's file: its name without directories, its size in bytes, its CRC-32, its media type by content. read:
    gives the bytes from an offset up to another one, once. close: for one that is not read."""

    name: str
    size: int
    crc: int
    media_type: str
    read: Callable[[int, int], Iterator[bytes]]
    close: Callable[[], None]

    @property
    def chunks(self) -> Iterator[bytes]:
        """All its bytes, once."""
        return self.read(0, self.size)


class OriginalFiles:
    """The original files of the pictures of one commit of `images`. May be used from several threads."""

    def __init__(self, server: PachydermClient, commit: str, cache: FileCache, fetched: str = "") -> None:
        """cache: of blocks and archives. fetched: the commit of `fetch`, "" for none."""
        self._server = server
        self._commit = commit
        self._fetched = fetched
        self._cache = cache
        self._known: dict[Source, tuple[int, str]] = {}  # of files that are their source's: CRC-32, media type

    def open(self, source: Source) -> OriginalFile:
        """The file of a source, of which the bytes are those that were seen: its hash is checked before the first of
        them is given. A file of its own is read whole for that once, and then, since a commit never changes, from the
        offset on that is asked for. A record of STL-10 becomes a PNG file.

        Raises SourceGoneError if it is not there, PachydermError if the server does not answer.
        """
        if not self._commit:
            raise SourceGoneError("the index does not tell the commit of images that it was made from")
        for holder in picture_containers.possible(source.path, self._blocks_of):
            try:
                path = holder.path.strip("/")
                file = self._server.file(*self._place(path), path)
            except Absent:
                continue
            if not file.is_directory and (found := self._in(file, source)) is not None:
                return found
        raise SourceGoneError(
            f"{source.path} cannot be found in commit {self._commit} of images: was that commit squashed or deleted?"
        )

    def _blocks_of(self, name: str) -> Iterator[str]:
        """The blocks that can hold a file of this true name. Of most only the names of their first and last pictures
        are remembered, since all lists together are as long as the library."""
        for block, first, last in self._lists:
            if first <= name <= last and any(each.path == name for each in self._list(block) or ()):
                yield f"/{block}"
        earlier = block_names.home(name, self._earlier)
        if earlier is not None:
            yield f"/{earlier}"

    def _place(self, path: str) -> tuple[str, str]:
        """The repo and the commit that a file is in."""
        return self._blocks.get(path, (REPO, self._commit))

    @cached_property
    def _blocks(self) -> dict[str, tuple[str, str]]:
        """The blocks, with the repo and the commit that each is in."""
        places = ((REPO, self._commit), (FETCHED, self._fetched))
        found = (place for place in places if place[1])
        return {each.path.strip("/"): place for place in found for each in self._server.files(*place, "/%block-*")}

    @cached_property
    def _earlier(self) -> frozenset[str]:
        return frozenset(each for each in self._blocks if pfs_names.is_block(each) and block_names.is_earlier(each))

    @cached_property
    def _lists(self) -> list[tuple[str, str, str]]:
        """The blocks with lists of their pictures, and the first and the last name on each."""
        with ThreadPoolExecutor(_READERS) as readers:
            rest = [each for each in self._blocks if pfs_names.is_block(each) and each not in self._earlier]
            found = zip(rest, readers.map(self._list, rest), strict=True)
            return [(block, listed[0].path, listed[-1].path) for block, listed in found if listed]

    def _list(self, block: str) -> list[BlockMember] | None:
        return block_names.read_list(lambda most: b"".join(self._server.read(*self._place(block), block, 0, most)))

    def _in(self, file: FileFacts, source: Source) -> OriginalFile | None:
        """The picture's file, if it is this file or in it."""
        true = pfs_names.unescape(file.path)
        if url_records.is_file(file.path):
            return self._recorded(file, source)
        if pfs_names.is_block(file.path):
            return self._in_archive(file, None, source)
        if true == source.path:
            if stl10.holds_pictures(true, file.size):
                return _record(self._server.read(REPO, self._commit, file.path), source)
            return self._own(file, source)
        if stl10.holds_pictures(true, file.size):
            number = source.path.removeprefix(f"{true}/")
            if not number.isdecimal() or (int(number) + 1) * stl10.RECORD > file.size:
                return None
            at = int(number) * stl10.RECORD
            return _record(self._server.read(REPO, self._commit, file.path, at, stl10.RECORD), source)
        return self._in_archive(file, true, source)

    def _recorded(self, file: FileFacts, source: Source) -> OriginalFile | None:
        """The picture of a record in this file. Raises SourceGoneError if it cannot be had from its URL now."""
        try:
            records = url_records.parse_records(b"".join(self._server.read(REPO, self._commit, file.path)))
            record = next(each for each in records if (each.path, each.sha256) == (source.path, source.sha256))
        except (ValueError, StopIteration):
            return None
        try:
            return _original([self._fetch(record)], source)
        except (StageError, OtherBytesError) as error:
            raise SourceGoneError(str(error)) from error

    @cached_property
    def _fetch(self) -> Callable[[UrlRecord], bytes]:
        return remote_files.originals(os.environ)

    def _own(self, file: FileFacts, source: Source) -> OriginalFile | None:
        """A file of its own, if it is the source's."""
        if (known := self._known.get(source)) is None:
            found = _original(self._server.read(REPO, self._commit, file.path), source)
            if found is not None:
                if len(self._known) >= _KNOWN:
                    self._known.clear()
                self._known[source] = found.crc, found.media_type
            return found

        def read(start: int, stop: int) -> Iterator[bytes]:
            return self._server.read(REPO, self._commit, file.path, start, stop - start)

        return OriginalFile(_name(source), file.size, *known, read, lambda: None)

    def _in_archive(self, file: FileFacts, archive: str | None, source: Source) -> OriginalFile | None:
        """archive: its true name; None for a block, whose members have names of their own."""
        with self._cache.scratch() as scratch:
            local = fetch_file(self._server, self._cache, *self._place(file.path), file, scratch / "archive")
            return _member(local, archive, source, scratch)


def _member(file: Path, archive: str | None, source: Source, scratch: Path) -> OriginalFile | None:
    with file.open("rb") as stream:
        kind = kind_of(stream.read(HEAD))
    if not kind.is_archive:
        return None
    try:
        for each in members(file, kind, LIMITS):
            true = pfs_names.unescape(each.name) if archive is None else f"{archive}/{each.name}"
            if each.stream is None:
                continue
            if true == source.path:
                chunks = _pieces(each)
                found = _record(chunks, source) if stl10.holds_pictures(true, each.size) else _original(chunks, source)
                if found is not None:
                    return found
            elif archive is None and source.path.startswith(f"{true}/"):  # an archive in a block
                inner = scratch / "member"
                with inner.open("wb") as target:
                    target.writelines(_pieces(each))
                return _member(inner, true, source, scratch)
    except (BadArchive, BadMember):
        return None
    return None


def _pieces(member: ArchiveMember) -> Iterator[bytes]:
    assert member.stream is not None
    while piece := member.stream.read(_PIECE):
        yield piece


def _original(chunks: Iterable[bytes], source: Source) -> OriginalFile | None:
    """The file with these bytes, if they are the source's."""
    digest, size, crc, head = hashlib.sha256(), 0, 0, b""
    spool = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  it is closed by the one who reads it
    for chunk in chunks:
        digest.update(chunk)
        size += len(chunk)
        crc = zlib.crc32(chunk, crc)
        head += chunk[: max(0, HEAD - len(head))]
        spool.write(chunk)
    if digest.hexdigest() != source.sha256:
        spool.close()
        return None
    return _stored(_name(source), size, crc, _MEDIA_TYPES.get(kind_of(head), "application/octet-stream"), spool)


def _stored(name: str, size: int, crc: int, media_type: str, file: IO[bytes]) -> OriginalFile:
    """The file with the bytes of an open one, which is closed at the end."""

    def read(start: int, stop: int) -> Iterator[bytes]:
        with file:
            file.seek(start)
            while piece := file.read(min(_PIECE, stop - start)):
                start += len(piece)
                yield piece

    return OriginalFile(name, size, crc, media_type, read, file.close)


def _record(chunks: Iterable[bytes], source: Source) -> OriginalFile | None:
    """A record of STL-10 as a PNG file, if its bytes are the source's."""
    content = b"".join(chunks)
    if hashlib.sha256(content).hexdigest() != source.sha256:
        return None
    (pixels,) = stl10_records.upright(content)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    crc = zlib.crc32(file.getbuffer())
    return _stored(f"{_name(source)}.png", file.tell(), crc, "image/png", file)


def _name(source: Source) -> str:
    return source.path.rpartition("/")[2]
