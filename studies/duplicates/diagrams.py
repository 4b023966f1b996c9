"""Diagrams that look alike: charts of which one series is another, games of which one more move was made, months of a
calendar, and staves with other notes. Drawn here; knows no set's use."""

import calendar
from collections.abc import Iterator, Sequence
from random import Random

from PIL import Image, ImageDraw, ImageFont

_CHART = (800, 500)  # pixels
_PLOT = (70, 50, 770, 440)
_SERIES = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728")
_CHARTS = 4
_VARIANTS = 12
_SQUARE = 60  # pixels
_RANKS = ("rnbqkbnr", "pppppppp", *["........"] * 4, "PPPPPPPP", "RNBQKBNR")
_OPERA = (
    "e2e4 e7e5 g1f3 d7d6 d2d4 c8g4 d4e5 g4f3 d1f3 d6e5 f1c4 g8f6 f3b3 d8e7 b1c3 c7c6 c1g5 b7b5 c3b5 c6b5 c4b5 b8d7 "
    "e1c1a1d1 a8d8 d1d7 d8d7 h1d1 e7e6 b5d7 f6d7 b3b8 d7b8 d1d8"
)
"""Morphy's game at the opera, Paris 1858; castling is two moves in one."""

_LINES = 19  # of a board of go
_STONES = 60
_GRID = 28  # pixels
_YEARS = range(2021, 2026)
_MONTHS = (
    *("", "January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def lines() -> Iterator[Image.Image]:
    """Line charts with four series, in variants of which one series is another."""
    for number in range(_CHARTS):
        lot = Random(f"lines {number}")
        series = [_walk(lot, 24) for _ in _SERIES]
        for variant in range(_VARIANTS):
            changed = list(series)
            changed[variant % len(series)] = _walk(lot, 24)
            picture = _axes(f"Sales, region {number + 1}")
            draw = ImageDraw.Draw(picture)
            for colour, values in zip(_SERIES, changed, strict=True):
                draw.line([_point(place / 23, value) for place, value in enumerate(values)], colour, 3)
            yield picture


def bars() -> Iterator[Image.Image]:
    """Bar charts with three series, in variants of which one series is another."""
    for number in range(_CHARTS):
        lot = Random(f"bars {number}")
        series = [[lot.uniform(0.1, 0.95) for _ in range(8)] for _ in range(3)]
        for variant in range(_VARIANTS):
            changed = list(series)
            changed[variant % len(series)] = [lot.uniform(0.1, 0.95) for _ in range(8)]
            picture = _axes(f"Visitors, hall {number + 1}")
            draw = ImageDraw.Draw(picture)
            for which, values in enumerate(changed):
                for place, value in enumerate(values):
                    left, top = _point((place + 0.1 + which * 0.27) / 8, value)
                    draw.rectangle((left, top, left + 20, _PLOT[3]), _SERIES[which])
            yield picture


def _walk(lot: Random, count: int) -> list[float]:
    """A series from 0 to 1 in small steps."""
    values = [lot.uniform(0.2, 0.8)]
    while len(values) < count:
        values.append(min(1.0, max(0.0, values[-1] + lot.uniform(-0.12, 0.12))))
    return values


def _axes(title: str) -> Image.Image:
    picture = Image.new("RGB", _CHART, "white")
    draw = ImageDraw.Draw(picture)
    left, top, right, bottom = _PLOT
    draw.text((_CHART[0] / 2, 26), title, "black", ImageFont.load_default(20), "mm")
    for number in range(6):
        y = bottom + (top - bottom) * number / 5
        draw.line((left, y, right, y), "#dddddd")
        draw.text((left - 10, y), str(20 * number), "black", ImageFont.load_default(14), "rm")
    draw.line((left, top, left, bottom, right, bottom), "black", 2)
    return picture


def _point(across: float, up: float) -> tuple[float, float]:
    return _PLOT[0] + across * (_PLOT[2] - _PLOT[0]), _PLOT[3] + up * (_PLOT[1] - _PLOT[3])


def chess() -> Iterator[Image.Image]:
    """The position after each move of a game."""
    ranks = (zip("abcdefgh", rank, strict=True) for rank in _RANKS)
    board = {f"{file}{8 - row}": piece for row, rank in enumerate(ranks) for file, piece in rank}
    yield _position(board)
    for moves in _OPERA.split():
        for number in range(0, len(moves), 4):
            board[moves[number + 2 : number + 4]] = board[moves[number : number + 2]]
            board[moves[number : number + 2]] = "."
        yield _position(board)


def _position(board: dict[str, str]) -> Image.Image:
    picture = Image.new("RGB", (8 * _SQUARE, 8 * _SQUARE), "#f0d9b5")
    draw = ImageDraw.Draw(picture)
    for square, piece in board.items():
        column, row = "abcdefgh".index(square[0]), 8 - int(square[1])
        left, top = column * _SQUARE, row * _SQUARE
        if (column + row) % 2:
            picture.paste("#b58863", (left, top, left + _SQUARE, top + _SQUARE))
        if piece != ".":
            _piece(draw, left, top, piece)
    return picture


def _piece(draw: ImageDraw.ImageDraw, left: int, top: int, piece: str) -> None:
    """A foot and a body as of every piece, and a head by its kind."""
    fill, edge = ("#fafafa", "#202020") if piece.isupper() else ("#202020", "#c0c0c0")
    x, kind = left + _SQUARE / 2, piece.lower()
    draw.polygon([(x - 9, top + 26), (x + 9, top + 26), (x + 15, top + 46), (x - 15, top + 46)], fill, edge)
    draw.rectangle((x - 18, top + 45, x + 18, top + 52), fill, edge)
    if kind == "p":
        draw.ellipse((x - 9, top + 14, x + 9, top + 32), fill, edge)
    elif kind == "r":
        draw.rectangle((x - 14, top + 14, x + 14, top + 28), fill, edge)
        draw.rectangle((x - 4, top + 14, x + 4, top + 19), edge)
    elif kind == "n":
        draw.polygon([(x - 16, top + 24), (x + 2, top + 8), (x + 14, top + 20), (x + 10, top + 34)], fill, edge)
    elif kind == "b":
        draw.ellipse((x - 8, top + 6, x + 8, top + 32), fill, edge)
        draw.line((x - 3, top + 18, x + 4, top + 11), edge, 2)
    elif kind == "q":
        crown = [(-18, 8), (-9, 18), (0, 6), (9, 18), (18, 8), (11, 30), (-11, 30)]
        draw.polygon([(x + across, top + down) for across, down in crown], fill, edge)
    else:
        draw.rectangle((x - 3, top + 4, x + 3, top + 20), fill, edge)
        draw.rectangle((x - 8, top + 8, x + 8, top + 13), fill, edge)
        draw.ellipse((x - 13, top + 16, x + 13, top + 34), fill, edge)


def go() -> Iterator[Image.Image]:
    """A board of go after each of the last stones; none is taken."""
    lot = Random("go")
    places = lot.sample([(column, row) for column in range(_LINES) for row in range(_LINES)], 2 * _STONES)
    picture = Image.new("RGB", ((_LINES + 1) * _GRID, (_LINES + 1) * _GRID), "#dcb35c")
    draw = ImageDraw.Draw(picture)
    for number in range(1, _LINES + 1):
        draw.line((number * _GRID, _GRID, number * _GRID, _LINES * _GRID), "black")
        draw.line((_GRID, number * _GRID, _LINES * _GRID, number * _GRID), "black")
    for number, (column, row) in enumerate(places):
        x, y = (column + 1) * _GRID, (row + 1) * _GRID
        draw.ellipse((x - 12, y - 12, x + 12, y + 12), "#101010" if number % 2 else "#f5f5f5", "#101010")
        if number >= _STONES:
            yield picture.copy()


def calendars() -> Iterator[Image.Image]:
    """The months of five years, a page each."""
    for year in _YEARS:
        for month in range(1, 13):
            picture = Image.new("RGB", (700, 560), "white")
            draw = ImageDraw.Draw(picture)
            draw.rectangle((0, 0, 700, 80), "#2c5d8a")
            draw.text((350, 40), f"{_MONTHS[month]} {year}", "white", ImageFont.load_default(36), "mm")
            for row, week in enumerate(calendar.Calendar().monthdayscalendar(year, month)):
                _week(draw, row, week)
            yield picture


def _week(draw: ImageDraw.ImageDraw, row: int, days: Sequence[int]) -> None:
    for column, day in enumerate(days):
        left, top = 20 + column * 94, 95 + row * 76
        draw.rectangle((left, top, left + 94, top + 76), "#f3f3f3" if column > 4 else "white", "#888888")
        if day:
            draw.text((left + 10, top + 8), str(day), "#b03030" if column > 4 else "black", ImageFont.load_default(24))


def music() -> Iterator[Image.Image]:
    """Pages of staves with notes, each page with others."""
    for number in range(40):
        lot, page = Random(f"music {number}"), Image.new("RGB", (827, 1169), "white")
        draw = ImageDraw.Draw(page)
        draw.text((413, 60), f"Study No. {number + 1}", "black", ImageFont.load_default(30), "mm")
        for staff in range(9):
            top = 130 + 110 * staff
            for line in range(5):
                draw.line((70, top + 10 * line, 757, top + 10 * line), "black")
            for bar in range(5):
                draw.line((70 + bar * 687 // 4, top, 70 + bar * 687 // 4, top + 40), "black", 2)
            for place in range(16):
                x, y = 92 + place * 42, top + 5 * lot.randint(-1, 9)
                draw.ellipse((x - 6, y - 5, x + 6, y + 5), "black" if lot.random() < 0.7 else "white", "black", 2)
                draw.line((x + 6, y, x + 6, y - 32), "black", 2)
        yield page
