"""TIFF pictures with too many pixels to be in memory whole: a few strips or rows of tiles are decoded at a time and
shrunk at once, of the picture itself or of a page of reduced size.

A piece is a TIFF of its own with some of the file's strips or tiles, which the usual decoder reads. It is shrunk by
means of pixels, as Pillow does before it resamples.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from PIL import Image, TiffImagePlugin as tags
from PIL.TiffImagePlugin import ImageFileDirectory_v2, TiffImageFile

from stages.decode import exif
from stages.record.file_limits import MAX_PIXELS, MAX_TIFF_PIECE_PIXELS, MAX_TIFF_PIXELS

_TOGETHER = 4_000_000  # pixels of strips that are decoded at once
_MOST_OF_BYTE = 64  # pixels: others would keep a decoder busy for nothing
_MOST_PAGES = 64  # that are looked at
_SUBFILE_TYPE, _SUB_IFDS, _REDUCED, _OLD_JPEG, _LONG, _LONG8 = 254, 330, 1, 6, 4, 16
_STRIPS, _TILES = (tags.STRIPOFFSETS, tags.STRIPBYTECOUNTS), (tags.TILEOFFSETS, tags.TILEBYTECOUNTS)
_KEPT = (
    *(tags.BITSPERSAMPLE, tags.COMPRESSION, tags.PHOTOMETRIC_INTERPRETATION, tags.FILLORDER, tags.SAMPLESPERPIXEL),
    *(tags.PREDICTOR, tags.COLORMAP, tags.EXTRASAMPLES, tags.SAMPLEFORMAT, tags.JPEGTABLES, tags.YCBCRSUBSAMPLING),
    *(tags.IMAGEWIDTH, tags.TILEWIDTH, tags.TILELENGTH, 292, 293, 529, 532),
)
"""The tags that say how samples are decoded; 292 and 293 are options of faxes, 529 and 532 of YCbCr."""
_REDUCIBLE = {"1": "L", "P": "RGB", "PA": "RGBA", "RGBX": "RGB", "I;16": "I", "I;16B": "I", "I;16L": "I"}


@dataclass(frozen=True)
class TiffPage:
    """A page of a file, not decoded. size: width and height as they are stored. places: the offset and the length of
    each strip or tile. rows: of one. across: tiles beside each other, or 1."""

    data: bytes
    ifd: ImageFileDirectory_v2
    size: tuple[int, int]
    places: Sequence[tuple[int, int]]
    rows: int
    across: int

    def shrunk(self, least: tuple[int, int]) -> Image.Image:
        """The picture as it is stored, at a whole fraction of its size, the smallest that is at least so large. Raises
        whatever the decoder raises for damaged pieces."""
        (width, height), (across, down) = self.size, least
        factor = max(1, min(width // max(1, across), height // max(1, down)))
        found = rest = None
        top = 0
        for piece in self._pieces():
            joined = piece if rest is None else _joined(rest, piece)
            last = top * factor + joined.height >= height
            end = joined.height if last else joined.height - joined.height % factor
            rest = joined.crop((0, end, width, joined.height))
            if end:
                small = joined.crop((0, 0, width, end)).reduce(factor)
                found = found or Image.new(small.mode, (small.width, -(-height // factor)))
                found.paste(small, (0, top))
                top += small.height
        if found is None or top != found.height:
            raise OSError("rows are missing")
        return found

    def _pieces(self) -> Iterator[Image.Image]:
        """All rows from the top, some at a time, in modes that can be shrunk."""
        width, height = self.size
        layout = _TILES if tags.TILEOFFSETS in self.ifd else _STRIPS
        step = max(1, _TOGETHER // (width * self.rows))
        for first in range(0, -(-height // self.rows), step):
            places = self.places[first * self.across : (first + step) * self.across]
            parts = [self.data[place : place + size] for place, size in places]
            rows = min(step * self.rows, height - first * self.rows)
            piece = TiffImageFile(io.BytesIO(self._file(parts, rows, layout)))
            piece.load()
            yield piece.convert(_REDUCIBLE.get(piece.mode, piece.mode))

    def _file(self, parts: Sequence[bytes], rows: int, layout: tuple[int, int]) -> bytes:
        """A TIFF of some strips or tiles with so many rows of the picture."""
        head = self.data[:2] + (b"*\0\10\0\0\0" if self.data[:2] == b"II" else b"\0*\0\0\0\10")
        made = ImageFileDirectory_v2(head)
        sizes = [len(part) for part in parts]
        values = {tag: self.ifd[tag] for tag in _KEPT if tag in self.ifd}
        values |= {tags.IMAGELENGTH: rows, layout[1]: tuple(sizes)}
        if layout == _STRIPS:
            values[tags.ROWSPERSTRIP] = self.rows
        for tag, value in values.items():
            type_ = self.ifd.tagtype[tag] if tag in _KEPT else _LONG
            made.tagtype[tag] = _LONG if type_ == _LONG8 else type_
            made[tag] = value
        made.tagtype[layout[0]] = _LONG
        made[layout[0]] = places = tuple(accumulate(sizes[:-1], initial=0))
        if layout == _TILES:  # whose offsets Pillow does not move behind the directory
            begin = 8 + len(made.tobytes(8))
            made[layout[0]] = tuple(begin + place for place in places)
        return b"".join((head, made.tobytes(8), *parts))


def pages(data: bytes, picture: TiffImageFile) -> Sequence[TiffPage]:
    """The pages that show an opened picture and can be decoded in pieces, itself and those of reduced size, the
    smallest first; none if the picture is small enough to be decoded whole."""
    if picture.size[0] * picture.size[1] <= MAX_PIXELS:
        return ()
    found = [_page(data, picture.tag_v2)]
    offsets, known = _offsets(picture.tag_v2), {0}
    while offsets and len(known) <= _MOST_PAGES:
        offset = offsets.pop(0)
        if offset in known:
            continue
        known.add(offset)
        with contextlib.suppress(Exception):  # a damaged page is none
            ifd = _directory(data, offset)
            offsets += _offsets(ifd)
            found += [_page(data, ifd)] if int(ifd.get(_SUBFILE_TYPE, 0)) & _REDUCED else []
    (width, height), ratio = found[0].size, found[0].size[0] / found[0].size[1]
    alike = (each for each in found if abs(each.size[0] - ratio * each.size[1]) <= 2 * max(1, width / height))
    return sorted(filter(_is_usable, alike), key=lambda each: each.size)


def shrunk(pages: Sequence[TiffPage], least: tuple[int, int], turn: Image.Transpose | None) -> Image.Image:
    """The upright picture, at the smallest size that is at least so large if there is one: see TiffPage.shrunk."""
    across, down = least[::-1] if turn in exif.ON_THEIR_SIDES else least
    page = next((each for each in pages if each.size[0] >= across and each.size[1] >= down), pages[-1])
    found = page.shrunk((across, down))
    return found if turn is None else found.transpose(turn)


def _directory(data: bytes, offset: int) -> ImageFileDirectory_v2:
    found, stream = ImageFileDirectory_v2(data[:16] if b"+" in data[2:4] else data[:8]), io.BytesIO(data)
    stream.seek(offset)
    found.load(stream)
    return found


def _is_usable(page: TiffPage) -> bool:
    pixels = page.size[0] * page.size[1]
    width = max(page.size[0], page.across * int(page.ifd.get(tags.TILEWIDTH, 1)))
    chunky = page.ifd.get(tags.PLANAR_CONFIGURATION, 1) == 1 and page.ifd.get(tags.COMPRESSION, 1) != _OLD_JPEG
    bounded = pixels <= min(MAX_TIFF_PIXELS, _MOST_OF_BYTE * len(page.data))
    return chunky and bounded and page.rows * width <= MAX_TIFF_PIECE_PIXELS


def _page(data: bytes, ifd: ImageFileDirectory_v2) -> TiffPage:
    width, height = int(ifd[tags.IMAGEWIDTH]), int(ifd[tags.IMAGELENGTH])
    if tags.TILEOFFSETS in ifd:
        places = tuple(zip(*(ifd[tag] for tag in _TILES), strict=True))
        rows, across = int(ifd[tags.TILELENGTH]), -(-width // int(ifd[tags.TILEWIDTH]))
        return TiffPage(data, ifd, (width, height), places, rows, across)
    places = tuple(zip(*(ifd[tag] for tag in _STRIPS), strict=True))
    rows = max(1, min(height, int(ifd.get(tags.ROWSPERSTRIP, height))))
    if len(places) == 1 and ifd.get(tags.COMPRESSION, 1) == 1:  # lines of samples, which can be divided anywhere
        line, rows = places[0][1] // height, max(1, _TOGETHER // width)
        places = tuple((places[0][0] + top * line, min(rows, height - top) * line) for top in range(0, height, rows))
    return TiffPage(data, ifd, (width, height), places, rows, 1)


def _offsets(ifd: ImageFileDirectory_v2) -> list[int]:
    below = ifd.get(_SUB_IFDS, ())
    return [*map(int, below if isinstance(below, tuple) else (below,)), *([ifd.next] if ifd.next else [])]


def _joined(above: Image.Image, below: Image.Image) -> Image.Image:
    found = Image.new(below.mode, (below.width, above.height + below.height))
    found.paste(above, (0, 0))
    found.paste(below, (0, above.height))
    return found
