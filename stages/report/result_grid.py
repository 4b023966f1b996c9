"""The result grid, a PNG: a few queries, each followed by its nearest pictures in increasing distance.

Drawn with Pillow alone, so equal answers give equal bytes (for one version of Pillow). Knows the answers' values, but
no tables, no files and no Pachyderm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO

from PIL import Image, ImageDraw

from stages.datum import text_format
from stages.quality.distance_limits import SAME, WEAK
from stages.quality.entry_answers import EntryAnswers, QueryAnswer, QueryMatch
from stages.record.framing import PAD, Framing
from stages.record.sources import paths
from stages.report import captions
from stages.report.query_sample import GRID_QUERIES
from stages.report.sheet_text import fitted, font, wrapped

NEIGHBOUR_COLUMNS = 3
"""Neighbours drawn beside each query, as in the original system; the page shows all K."""

TILE = 192  # pixels: the longer edge of every picture
_GAP = 28
_QUERY_GAP = 44  # right of the query
MARGIN = 40
PANEL = 16  # margin of the queries' tinted panel around its tiles
_COLUMNS = (
    MARGIN,
    *(MARGIN + TILE + _QUERY_GAP + column * (TILE + _GAP) for column in range(NEIGHBOUR_COLUMNS)),
)  # left edges of the tiles
_WIDTH = _COLUMNS[-1] + TILE + MARGIN  # the same for every sheet
_INSET = 10  # pixels from the edge of a tile to its words
_BLANK_LINES = 8  # of words in the place of a picture, at most
_NAMES = 3  # lines of names under a tile, at most

_REASONS = 12  # rejected files listed on a sheet without pictures

_HEADLINE, _TITLE, _TEXT = 26, 17, 14
_LINE = 19  # pixels from one line of names to the next
_TITLE_HEIGHT = 28

_PAPER = "#ffffff"
_INK = "#16191d"
_MUTED = "#565e68"
_TINT = "#eaf0fb"
_ACCENT = "#2456c6"
_EDGE = "#c9ced6"
_NOTE = "#8a4b00"
_BLANK = "#f3f4f6"


def grid(answers: EntryAnswers, queries: Sequence[str]) -> bytes:
    """The sheet as a PNG file: a row for each of the first `GRID_QUERIES` of the `queries` (their ids).

    The columns are the query and its `NEIGHBOUR_COLUMNS` nearest (fewer if K is smaller), each with a title. For an
    entry without queries, or a library without pictures, the sheet says so.
    """
    by_id = {answer.query: answer for answer in answers.answers}
    rows = [_row(by_id[query], answers) for query in queries[:GRID_QUERIES]]
    heading = _heading(answers, len(rows))
    top = MARGIN + sum(line.height for line in heading)
    height = top + sum(_GAP + row.height for row in rows) + MARGIN
    sheet = Image.new("RGB", (_WIDTH, height), _PAPER)
    draw = ImageDraw.Draw(sheet)
    _draw_heading(draw, heading)
    if rows:
        panel = (MARGIN - PANEL, top + _GAP - PANEL, MARGIN + TILE + PANEL, height - MARGIN + PANEL)
        draw.rounded_rectangle(panel, radius=10, fill=_TINT)
    for row in rows:
        top += _GAP
        for left, tile in zip(_COLUMNS, row.tiles, strict=False):
            _draw_tile(sheet, draw, tile, left, top)
        top += row.height
    buffer = BytesIO()
    sheet.save(buffer, "PNG")
    return buffer.getvalue()


@dataclass(frozen=True)
class _Line:
    text: str
    size: int
    colour: str
    height: int


@dataclass(frozen=True)
class _Tile:
    """A picture, or the reason why it has no thumbnail, with its title and names."""

    title: str
    value: str  # beside the title
    remark: str  # right of both
    colour: str  # of the title
    names: tuple[str, ...]
    thumbnail: bytes | None
    blank: str = "no preview"  # in lines, as they fit


@dataclass(frozen=True)
class _Row:
    tiles: tuple[_Tile, ...]

    @property
    def height(self) -> int:
        return _TITLE_HEIGHT + TILE + 4 + _LINE * max(1, *(len(tile.names) for tile in self.tiles))


def _row(answer: QueryAnswer, answers: EntryAnswers) -> _Row:
    query = _Tile("Query", "", "", _ACCENT, _names(answer), answer.thumbnail, *_words(answer))
    tiles = [query, *(_neighbour(match, answer, answers) for match in answer.matches[:NEIGHBOUR_COLUMNS])]
    empty = _Tile("", "", "", _MUTED, (), None, "no more pictures" if answer.matches else "no pictures")
    return _Row(tuple(tiles + [empty] * (1 + min(NEIGHBOUR_COLUMNS, answers.k) - len(tiles))))


def _neighbour(match: QueryMatch, answer: QueryAnswer, answers: EntryAnswers) -> _Tile:
    distance, likeness = text_format.distance(match.distance), answers.likeness(answer, match)
    if answers.scale is None or answer.words is not None:
        return _Tile("distance", distance, likeness or "", _MUTED, _names(match), match.thumbnail)
    colour = {SAME: _ACCENT, WEAK: _MUTED}.get(likeness or "", _INK)
    return _Tile(likeness or "", "", distance, colour, _names(match), match.thumbnail)


def _words(answer: QueryAnswer) -> tuple[str, ...]:
    """What stands in the place of the picture where words are asked about; nothing for a picture."""
    if answer.words is None:
        return ()
    return (" ".join(filter(None, (f"“{answer.words.text}”", captions.without(answer)))),)


def _names(pictured: QueryAnswer | QueryMatch) -> tuple[str, ...]:
    """The lines under a tile: all of the picture's names, or the first ones and the number of others."""
    names = [fitted(path, _TEXT, TILE) for path in paths(pictured.sources)] or [captions.UNNAMED]
    if len(names) <= _NAMES:
        return tuple(names)
    return (*names[: _NAMES - 1], f"and {len(names) - _NAMES + 1:,} more names")


def _heading(answers: EntryAnswers, drawn: int) -> list[_Line]:
    width = _WIDTH - 2 * MARGIN
    lines = [_Line(fitted(captions.title(answers), _HEADLINE, width), _HEADLINE, _INK, 42)]
    said = [(captions.summary(answers, drawn, NEIGHBOUR_COLUMNS), _MUTED)] if answers.answers else []
    said += [(note, _NOTE) for note in captions.notes(answers)]
    if not answers.answers:  # there is nothing else to show
        said += [(f"{each.source}: {each.reason}", _INK) for each in answers.rejected[:_REASONS]]
        if len(answers.rejected) > _REASONS:
            said.append((f"and {len(answers.rejected) - _REASONS:,} more; index.html lists all of them", _MUTED))
    for text, colour in said:
        lines += [_Line(line, _TEXT, colour, 21) for line in wrapped(text, _TEXT, width)]
    return lines


def _draw_heading(draw: ImageDraw.ImageDraw, heading: Sequence[_Line]) -> None:
    y = MARGIN
    for line in heading:
        draw.text((MARGIN, y), line.text, fill=line.colour, font=font(line.size))
        y += line.height


def _draw_tile(sheet: Image.Image, draw: ImageDraw.ImageDraw, tile: _Tile, left: int, top: int) -> None:
    baseline = top + 17
    size = _TEXT if tile.value else _TITLE
    draw.text((left, baseline), tile.title, fill=tile.colour, font=font(size), anchor="ls")
    after = left + font(size).getlength(f"{tile.title} ")
    draw.text((after, baseline), tile.value, fill=_INK, font=font(_TITLE), anchor="ls")
    draw.text(
        (left + TILE, baseline), tile.remark, fill=_ACCENT if tile.value else _MUTED, font=font(_TEXT), anchor="rs"
    )
    top += _TITLE_HEIGHT
    box = (left, top, left + TILE - 1, top + TILE - 1)
    if tile.thumbnail is None:
        draw.rectangle(box, fill=_BLANK, outline=_EDGE)
        lines = wrapped(tile.blank, _TEXT, TILE - 2 * _INSET)
        if len(lines) > _BLANK_LINES:
            lines[_BLANK_LINES - 1 :] = ["…"]
        middle, first = left + TILE / 2, top + (TILE - _LINE * (len(lines) - 1)) / 2
        for number, line in enumerate(lines):
            draw.text((middle, first + number * _LINE), line, fill=_MUTED, font=font(_TEXT), anchor="mm")
    else:
        picture = _enlarged(tile.thumbnail)
        draw.rectangle(box, fill=_BLANK)
        sheet.paste(picture, (left + (TILE - picture.width) // 2, top + (TILE - picture.height) // 2))
        draw.rectangle(box, outline=_EDGE)
    for number, name in enumerate(tile.names):
        draw.text((left, top + TILE + 6 + number * _LINE), name, fill=_MUTED, font=font(_TEXT))


def _enlarged(thumbnail: bytes) -> Image.Image:
    """A picture as large as fits into a tile."""
    with Image.open(BytesIO(thumbnail)) as picture:
        size = Framing(TILE, PAD).scaled(picture.size)
        return picture.convert("RGB").resize(size, Image.Resampling.LANCZOS)
