"""Datums of the stage preprocess: a file of any kind, a block of `lookalike add` or another archive with pictures and
archives in it, from its bytes to normalised pictures and reasons."""

import io
import tarfile
from collections.abc import Iterator
from concurrent.futures import Future
from typing import cast

from stages.datum.contract import DatumInput
from stages.decode.decoder_processes import DecoderProcesses
from stages.decode.decoders import BadPicture
from stages.decode.picture_normaliser import NormalisedPicture, normalise
from stages.decode.picture_reader import DecodedPicture, UnreadableFile, read
from stages.record.file_kinds import FileKind
from stages.record.file_limits import FileLimits
from stages.record.framing import Framing
from tests.fuzz.scratch import scratch
from tests.fuzz.target import Target
from tests.fuzz.targets.pictures import during, picture
from tests.small_archives import unpadded, zipped

_NAMES = ("a.jpg", "%block-0123456789abcdef.tar", "b.zip", "train_X.bin")
_FRAMING = Framing(8, "pad")
_LIMITS = FileLimits(1 << 16, 50, 1 << 14, 1 << 14, 1 << 16, 3)


class _Here:
    """Decodes in this process, as the processes of the stage do."""

    def submit(self, data: bytes, kind: FileKind, framing: Framing) -> "Future[NormalisedPicture]":
        found: Future[NormalisedPicture] = Future()
        try:
            found.set_result(normalise(data, kind, framing, during=during))
        except BadPicture as failure:
            found.set_exception(failure)
        return found


def _read(data: bytes) -> None:
    """The first byte chooses the name, which decides whether the members have true names of their own."""
    name = _NAMES[data[0] % len(_NAMES)] if data else _NAMES[0]
    path = scratch() / "datum"
    path.write_bytes(data[1:])
    given = DatumInput("images", path, name, "")
    for each in read(given, _FRAMING, cast(DecoderProcesses, _Here()), _LIMITS):
        if isinstance(each, UnreadableFile):
            assert each.reason
        else:
            assert isinstance(each, DecodedPicture)
            assert len(each.source.sha256) == 64


def _packed(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return unpadded(file.getvalue())


def _seeds() -> Iterator[bytes]:
    png, gif = picture(FileKind.PNG), picture(FileKind.GIF)
    inside = zipped({"c.png": png})
    yield b"\0" + png
    yield b"\1" + _packed({"caf%C3%A9/a.png": png, "b.zip": inside, "Thumbs.db": b"x"})
    yield b"\2" + zipped({"a.gif": gif, "in.zip": inside, "../a.png": png, "note.txt": b"text"})
    yield b"\3" + bytes(600)


TARGETS = (Target("datums", _read, _seeds, (b"PK\3\4", b"ustar  \0", b"%2F", b"\x1f\x8b"), 6000),)
