"""Pictures shown: found on disk or in the library, drawn on a terminal or written as PNG files."""

import re
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from pipelines.client.commit_writer import CommitWriter
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library import snapshots
from pipelines.library.block_store import BlockDownloads
from pipelines.library.snapshots import LibrarySnapshot
from stages.datum.contract import DatumInput
from stages.decode import picture_reader, stl10, stl10_records
from stages.decode.decoder_processes import DecoderProcesses
from stages.record import picture_containers, url_records
from stages.record.framing import PAD, Framing, unpadded
from stages.record.pfs_names import escape_path

_SIDE = 256
"""The longer edge, in pixels, of a picture shown from the library."""

_WIDEST = 96
"""Most columns of a drawn picture; each shows two pixels, one above the other."""


def can_show(console: Console) -> bool:
    """Whether this terminal can show pictures."""
    return console.is_terminal and console.color_system in ("256", "truecolor")


def from_disk(image: str) -> Image.Image | None:
    """A picture file, or a record of an STL-10 file ("train_X.bin/000123"); None if the file does not exist.

    Raises LookalikeError if there is one, but no picture in it.
    """
    path = Path(image)
    if path.is_file():
        if stl10.holds_pictures(path.name, path.stat().st_size):
            raise LookalikeError(
                f"{image} is a file of {path.stat().st_size // stl10.RECORD:,} pictures: name one of them, "
                f"{stl10.record_name(image, 0)}"
            )
        try:
            with Image.open(path) as picture:
                return ImageOps.exif_transpose(picture).convert("RGB")
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            raise LookalikeError(f"{image} is not a picture that can be shown: {error}") from error
    if stl10.is_record_name(image) and path.parent.is_file():
        with path.parent.open("rb") as file:
            file.seek(int(path.name) * stl10.RECORD)
            record = file.read(stl10.RECORD)
        if len(record) < stl10.RECORD:
            raise LookalikeError(
                f"{path.parent} has {path.parent.stat().st_size // stl10.RECORD:,} pictures, counted from 0: none is "
                f"number {int(path.name):,}"
            )
        (pixels,) = stl10_records.upright(record)
        return Image.fromarray(pixels)
    return None


def from_library(connection: Connection, name: str) -> Image.Image:
    """A picture in the library by its true name, as shown on result sheets. Raises LookalikeError if it is missing."""
    commit = CommitWriter(connection, snapshots.REPO).newest()
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch, DecoderProcesses(1) as decoders:
        library = LibrarySnapshot(connection, commit, BlockDownloads(Path(scratch)))
        for path, _ in picture_containers.possible(name, partial(_home, library)):
            repo = library.repository(path)
            if not (commit or path.strip("/") in library.fetched) or not repo.is_file(path):
                continue
            file = Path(scratch) / "datum"
            with file.open("wb") as target:
                repo.fetch(path, target)
            given = DatumInput(snapshots.REPO, file, path.strip("/"), "")
            if url_records.is_file(path):
                given = _fetched(library, path, name, file)
            for each in picture_reader.read(given, Framing(_SIDE, PAD), decoders):
                if isinstance(each, picture_reader.DecodedPicture) and each.source.path == name:
                    return Image.fromarray(np.ascontiguousarray(unpadded(each.framed)))
    raise LookalikeError(f"there is neither a file {name} here nor a picture of that name in the library")


def _fetched(library: LibrarySnapshot, block: str, name: str, file: Path) -> DatumInput:
    """A picture that stays at its URL, copied into a file as if it were in the library."""
    with file.open("wb") as target:
        target.writelines(library.original(block.strip("/"), name))
    return DatumInput(snapshots.REPO, file, escape_path(name), "")


def _home(library: LibrarySnapshot, name: str) -> list[str]:
    """The path of the block that has a picture of the library, if one does."""
    home = library.home(name)
    return [] if home is None else [f"/{home}"]


def half_blocks(picture: Image.Image, columns: int) -> Text:
    """A picture in coloured half blocks, at most `width` columns wide."""
    width = max(1, min(columns, _WIDEST, picture.width))
    height = max(1, round(picture.height * width / picture.width / 2)) * 2
    small = picture.convert("RGB").resize((width, height), Image.Resampling.LANCZOS)
    colours = [Color.from_rgb(*pixel) for pixel in zip(*[iter(small.tobytes())] * 3, strict=True)]
    text = Text(no_wrap=True)
    for top in range(0, height, 2):
        for column in range(width):
            above, below = colours[top * width + column], colours[(top + 1) * width + column]
            text.append("▀", Style(color=above, bgcolor=below))
        text.append("\n")
    return text


def write_png(picture: Image.Image, directory: Path, number: int, name: str) -> Path:
    """Writes a picture as a PNG file named by its number and name into a directory, which is created."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{number}-{re.sub(r'[^A-Za-z0-9._-]+', '-', name)[-100:].strip('-')}.png"
    picture.save(path)
    return path
