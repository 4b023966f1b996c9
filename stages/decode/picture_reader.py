"""The pictures and the rejections in a datum's file or directory, one at a time.

Tells files apart by content, and skips without a record the droppings of operating systems and lookalike's own list of
names. Reads ahead of the decoders by a few pictures. Knows no packs and no buckets.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import stat
import tempfile
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from stages.datum.contract import DatumInput, spool
from stages.decode import picture_normaliser, stl10, stl10_records
from stages.decode.archives.archive_member import DAMAGED_MEMBER, ArchiveMember, BadArchive, BadMember, unsafe_name
from stages.decode.archives.archive_reader import members
from stages.decode.decoder_processes import DecoderProcesses
from stages.decode.decoders import BadPicture
from stages.decode.picture_normaliser import NormalisedPicture, PictureIdentity
from stages.decode.recorded_pictures import Fetch, fetched
from stages.record import pfs_names, url_records
from stages.record.file_kinds import HEAD, FileKind, kind_of, why_unreadable
from stages.record.file_limits import LIMITS, FileLimits
from stages.record.framing import Framing, PictureSquare
from stages.record.sources import Source

_AHEAD = 32 << 20
"""Bytes of pictures' files that are read and not decoded yet, beside those of the next one."""

_MOST_AHEAD = 64
"""Pictures that are read ahead, and the most whose pixels wait for an earlier one's: 10 MB at 224 pixels. Four blocks
of records."""

_MOST_RECORDS = 16  # of a block
_BLOCK_BYTES = 4 << 20  # of a block's squares; a single one may be larger


@dataclass(frozen=True)
class DecodedPicture:
    """A decoded picture. source: with the hash and the facts of its file or record. framed: normalised. coded: the
    same for a pack. thumbnail: a JPEG file. identity: None if it has not been computed."""

    source: Source
    framed: PictureSquare
    coded: bytes
    thumbnail: bytes
    identity: PictureIdentity | None


@dataclass(frozen=True)
class UnreadableFile:
    """A file or member that yields no picture. path: its true path. reason: for the user."""

    path: str
    reason: str


@dataclass(frozen=True)
class _Decoding:
    """A picture that is being decoded. source: without the facts that decoding tells. result: waits for it. cancel:
    gives it up."""

    source: Source
    result: Callable[[], NormalisedPicture]
    cancel: Callable[[], object] = lambda: None


_Found = DecodedPicture | UnreadableFile | _Decoding


def read(
    given: DatumInput,
    framing: Framing,
    decoders: DecoderProcesses,
    limits: FileLimits = LIMITS,
    without: Collection[Path] = (),
    fetch: Fetch | None = None,
) -> Iterator[DecodedPicture | UnreadableFile]:
    """Everything in a datum's file or directory, pictures normalised, in the order of the files.

    A source's path is the unescaped path within the repo. For an archive's member the member's name is appended; a
    member of an ingest block has its own unescaped name instead. A picture in an STL-10 file has the file's path and
    its number, also where a block holds it under that name. without: files that are left out. fetch: gives
    the pictures of records (stages.record.url_records); without it a file of these is one that yields no picture.
    Raises OSError if the machine cannot read its files, and whatever `fetch` does.
    """
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        reader = _Reader(framing, limits, Path(scratch), decoders, fetch)
        files = ((path, repo_path) for repo_path, path in files_of(given) if path not in without)
        yield from _decoded(each for file in files for each in reader.datum_file(*file))


def _decoded(found: Iterable[_Found]) -> Iterator[DecodedPicture | UnreadableFile]:
    """The same in the same order, with what is being decoded once it is. Waits for the first of them while the others
    have more than _AHEAD bytes in their files."""
    waiting: deque[_Found] = deque()
    held = 0
    try:
        for each in found:
            waiting.append(each)
            held += _size(each)
            while waiting and (held > _AHEAD or len(waiting) > _MOST_AHEAD or not isinstance(waiting[0], _Decoding)):
                held -= _size(waiting[0])
                yield _outcome(waiting.popleft())
        while waiting:
            yield _outcome(waiting.popleft())
    finally:
        for each in waiting:
            if isinstance(each, _Decoding):
                each.cancel()


def _size(each: _Found) -> int:
    return each.source.bytes if isinstance(each, _Decoding) else 0


def _outcome(each: _Found) -> DecodedPicture | UnreadableFile:
    if not isinstance(each, _Decoding):
        return each
    try:
        found = each.result()
    except BadPicture as failure:
        return UnreadableFile(each.source.path, str(failure))
    source = found.facts._replace(path=each.source.path, sha256=each.source.sha256, bytes=each.source.bytes)
    return DecodedPicture(source, found.framed, found.coded, found.thumbnail, found.identity)


def files_of(given: DatumInput) -> Iterator[tuple[str, Path]]:
    """Path in the repo and on disk of the datum's file, or of each in its directory, sorted."""
    if not given.path.is_dir():
        yield given.repo_path, given.path
        return
    for directory, directories, files in os.walk(given.path, onerror=_fail):
        directories.sort()
        below = Path(directory).relative_to(given.path)
        # Links to directories are not followed; they are listed here so that each is reported.
        links = [each for each in directories if Path(directory, each).is_symlink()]
        for name in sorted(files + links):
            inside = "/".join((*below.parts, name))
            if name != pfs_names.NAMES_FILE and not pfs_names.is_system_file(inside):
                yield f"{given.repo_path}/{inside}".lstrip("/"), Path(directory, name)


def _fail(failure: OSError) -> None:
    raise failure  # os.walk would skip an unreadable directory


class _Reader:
    """Reads one file after the other. scratch: a directory for temporary files."""

    def __init__(
        self, framing: Framing, limits: FileLimits, scratch: Path, decoders: DecoderProcesses, fetch: Fetch | None
    ) -> None:
        self.fetch = fetch
        self.framing = framing
        self.limits = limits
        self.scratch = scratch
        self.decoders = decoders
        self.records = _RecordBlocks(framing)

    def datum_file(self, path: Path, repo_path: str) -> Iterator[_Found]:
        true = pfs_names.unescape(repo_path)
        mode = path.stat().st_mode if path.exists() else 0
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            yield UnreadableFile(true, "not a file: a link to a directory, a broken link or a device")
            return
        spooled = spool(path, self.scratch)
        if self.fetch is not None and url_records.is_file(repo_path):
            yield from self.recorded(spooled, true, self.fetch)
        else:
            yield from self.file(spooled, true, pfs_names.is_block(repo_path))
        if spooled != path:
            shutil.rmtree(spooled.parent)

    def file(self, path: Path, true: str, is_block: bool) -> Iterator[_Found]:
        """A seekable file on disk, as archives need it."""
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            head = stream.read(HEAD)
            kind = kind_of(head)
            if not kind.is_archive or stl10.holds_pictures(true, size):
                yield from self.stream(stream, head, size, true)
                return
        try:
            for member in members(path, kind, self.limits):
                is_list = is_block and member.name == pfs_names.MEMBERS_FILE
                if not is_list and not pfs_names.is_system_file(member.name):
                    yield from self.member(member, None if is_block else true)
        except BadArchive as failure:
            yield UnreadableFile(true, str(failure))

    def recorded(self, path: Path, true: str, fetch: Fetch) -> Iterator[_Found]:
        """The pictures of a file of records, under their own names."""
        try:
            records = url_records.parse_records(path.read_bytes())
        except ValueError as failure:
            yield UnreadableFile(true, f"not a list of pictures at URLs: {failure}")
            return
        for record, content in fetched(records, fetch):
            if isinstance(content, str):
                yield UnreadableFile(record.path, content)
            elif kind_of(content).is_picture:
                yield self.picture(io.BytesIO(content), b"", len(content), kind_of(content), record.path)
            else:
                yield UnreadableFile(record.path, why_unreadable(content[:HEAD]))

    def member(self, member: ArchiveMember, archive: str | None) -> Iterator[_Found]:
        """archive: its true path; None for an ingest block, whose members have true paths of their own."""
        true = pfs_names.unescape(member.name) if archive is None else f"{archive}/{member.name}"
        problem = member.problem or (None if archive is None else unsafe_name(member.name))
        if problem or not member.stream:
            yield UnreadableFile(true, problem or DAMAGED_MEMBER)
            return
        try:
            head = member.stream.read(HEAD)
            if stl10.holds_pictures(true, member.size) or not kind_of(head).is_archive:
                yield from self.stream(member.stream, head, member.size, true)
            elif archive is None:
                yield from self.packed_archive(member.stream, head, true)
            else:
                yield UnreadableFile(true, "an archive inside an archive, which is not unpacked: put it separately")
        except BadMember as failure:
            yield UnreadableFile(true, str(failure))

    def packed_archive(self, stream: stl10_records.ByteStream, head: bytes, true: str) -> Iterator[_Found]:
        """An archive that ingest packed into a block is read as the file that it was."""
        unpacked = self.scratch / "member"
        with unpacked.open("wb") as file:
            while head:
                file.write(head)
                head = stream.read(1 << 20)
        yield from self.file(unpacked, true, is_block=False)
        unpacked.unlink()

    def stream(self, stream: stl10_records.ByteStream, head: bytes, size: int, true: str) -> Iterator[_Found]:
        """A picture, an STL-10 file or an unreadable one. head: its first bytes, already read. size: of all of it."""
        if stl10.holds_pictures(true, size):
            yield from self.stl10(stream, head, size, true)
            return
        kind = kind_of(head)
        if kind.is_picture:
            yield self.picture(stream, head, size, kind, true)
        else:
            problem = stl10.problem(true, size) if head and stl10.is_named_so(true) else None
            yield UnreadableFile(true, problem or why_unreadable(head))

    def picture(
        self, stream: stl10_records.ByteStream, head: bytes, size: int, kind: FileKind, true: str
    ) -> UnreadableFile | _Decoding:
        if size > self.limits.picture_bytes:
            return UnreadableFile(
                true, f"{size:,} bytes: the limit for a picture's file is {self.limits.picture_bytes:,}"
            )
        data = head + stream.read(size - len(head))
        found = self.decoders.submit(data, kind, self.framing)
        return _Decoding(Source(true, hashlib.sha256(data).hexdigest(), bytes=len(data)), found.result, found.cancel)

    def stl10(self, stream: stl10_records.ByteStream, head: bytes, size: int, true: str) -> Iterator[_Found]:
        alone = stl10.is_record_name(true)
        for number, record in enumerate(stl10_records.records(head, stream)):
            path = true if alone else stl10.record_name(true, number)
            source = Source(path, hashlib.sha256(record).hexdigest(), bytes=len(record))
            yield _Decoding(source, self.records.add(record))


class _RecordBlocks:
    """Records of STL-10, of any number of files, added one after the other and normalised in blocks, which takes an
    eighth less time than one by one."""

    def __init__(self, framing: Framing) -> None:
        self._framing = framing
        self._most = min(_MOST_RECORDS, max(1, _BLOCK_BYTES // (3 * framing.side**2)))
        self._block = _RecordBlock(framing)

    def add(self, record: bytes) -> Callable[[], NormalisedPicture]:
        """What gives the picture of a record, which is normalised with those next to it when one of them is asked
        for."""
        if self._block.found or len(self._block.records) == self._most:
            self._block = _RecordBlock(self._framing)
        self._block.records.append(record)
        return partial(self._block.picture, len(self._block.records) - 1)


@dataclass
class _RecordBlock:
    framing: Framing
    records: list[bytes] = field(default_factory=list)
    found: list[NormalisedPicture] = field(default_factory=list)

    def picture(self, row: int) -> NormalisedPicture:
        if not self.found:
            self.found = picture_normaliser.reframe(stl10_records.upright(b"".join(self.records)), self.framing)
            self.records.clear()
        return self.found[row]
