"""Pictures of screens that look alike: of two, a digit, a row, a time or a window is different. Drawn here; knows no
set's use."""

from collections.abc import Iterator
from random import Random

from PIL import Image, ImageDraw, ImageFont

_TERMINAL = (80, 30)  # columns and rows of letters
_CELL = (10, 20)  # pixels of a letter
_COMMANDS = ("make test", "git status", "ls -l", "df -h", "ps aux", "ping host")
_FOLDER = (900, 620)  # pixels
_DASHBOARD = (1280, 720)
_TELEPHONE = (390, 844)
_DESKTOP = (1366, 768)
_DIALOGS = ("Save changes?", "Delete file?", "Update ready", "No connection", "Low battery", "Print page", "Log out?")
_PLACES = ((0.3, 0.3), (0.6, 0.3), (0.45, 0.5), (0.3, 0.6), (0.6, 0.6))
_SIZES = ((300, 140), (420, 180))


def terminals() -> Iterator[Image.Image]:
    """Terminals with the output of six programs, each in ten variants that differ in one digit."""
    for number, command in enumerate(_COMMANDS):
        lot = Random(command)
        rows = ["".join(lot.choice("abcdefghij 0123456789./-") for _ in range(lot.randint(20, 78))) for _ in range(27)]
        row = 4 * number + 2
        for digit in range(10):
            shown = [f"user@host:~$ {command}", *rows, "user@host:~$ "]
            shown[row] = f"{shown[row][:12]}{digit}{shown[row][13:]}"
            picture = Image.new("RGB", (_TERMINAL[0] * _CELL[0], _TERMINAL[1] * _CELL[1]), "#1e1e1e")
            _letters(picture, shown)
            yield picture


def _letters(picture: Image.Image, rows: list[str]) -> None:
    """Text in cells of one width, whatever the face."""
    draw, face = ImageDraw.Draw(picture), ImageFont.load_default(15)
    for row, text in enumerate(rows):
        for column, letter in enumerate(text):
            where = column * _CELL[0] + _CELL[0] / 2, row * _CELL[1] + 15
            draw.text(where, letter, "#7fd77f" if text.startswith("user@") else "#d0d0d0", face, "ms")


def folders() -> Iterator[Image.Image]:
    """Three folders in a window, each with another row selected."""
    face = ImageFont.load_default(15)
    for folder in ("Documents", "Music", "Backups"):
        lot = Random(folder)
        rows = [(f"{folder.lower()}-{lot.randrange(10**5):05d}.dat", f"{lot.randrange(9999)} kB") for _ in range(20)]
        for selected in range(len(rows)):
            picture = Image.new("RGB", _FOLDER, "white")
            draw = ImageDraw.Draw(picture)
            draw.rectangle((0, 0, _FOLDER[0], 44), "#d8dce0")
            draw.text((20, 12), folder, "black", ImageFont.load_default(18))
            draw.rectangle((0, 44, 190, _FOLDER[1]), "#eef0f2")
            for row, (name, size) in enumerate(rows):
                y = 56 + 27 * row
                if row == selected:
                    draw.rectangle((190, y - 4, _FOLDER[0], y + 22), "#3a78c8")
                draw.rectangle((204, y, 218, y + 16), "#e8b84a")
                draw.text((230, y), name, "white" if row == selected else "black", face)
                draw.text((860, y), size, "white" if row == selected else "black", face, "ra")
            yield picture


def dashboards() -> Iterator[Image.Image]:
    """Three dashboards of eight tiles, in variants of which one tile has another number."""
    for number in range(3):
        lot = Random(f"dashboard {number}")
        values = [lot.randint(100, 999) for _ in range(8)]
        for tile in range(8):
            for _ in range(2):
                changed = [*values[:tile], lot.randint(100, 999), *values[tile + 1 :]]
                yield _dashboard(changed, dark=number == 1)


def _dashboard(values: list[int], dark: bool) -> Image.Image:
    ground, tile, ink = ("#12161c", "#1f2630", "#e6e6e6") if dark else ("#f2f4f7", "#ffffff", "#202020")
    picture = Image.new("RGB", _DASHBOARD, ground)
    draw = ImageDraw.Draw(picture)
    draw.text((30, 24), "Operations", ink, ImageFont.load_default(28))
    for number, value in enumerate(values):
        left, top = 30 + number % 4 * 310, 90 + number // 4 * 310
        draw.rounded_rectangle((left, top, left + 290, top + 290), 12, tile)
        draw.text((left + 20, top + 18), f"Queue {number + 1}", ink, ImageFont.load_default(18))
        draw.text((left + 20, top + 60), str(value), ink, ImageFont.load_default(64))
        for place, height in enumerate(Random(number).choices(range(10, 90), k=12)):
            x = left + 20 + place * 21
            draw.rectangle((x, top + 270 - height, x + 14, top + 270), "#4a90d9")
    return picture


def telephones() -> Iterator[Image.Image]:
    """A telephone's first screen, at each of 60 minutes."""
    icons = ("#34c759", "#007aff", "#ff9500", "#ff3b30", "#af52de", "#5ac8fa", "#ffcc00", "#8e8e93")
    for minute in range(60):
        picture = Image.linear_gradient("L").resize(_TELEPHONE).convert("RGB")
        picture = Image.blend(picture, Image.new("RGB", _TELEPHONE, "#30507a"), 0.7)
        draw = ImageDraw.Draw(picture)
        draw.text((195, 150), f"09:{minute:02d}", "white", ImageFont.load_default(84), "mm")
        draw.text((195, 220), "Tuesday 5 March", "white", ImageFont.load_default(22), "mm")
        draw.text((30, 20), f"09:{minute:02d}", "white", ImageFont.load_default(16))
        draw.rounded_rectangle((330, 20, 362, 36), 4, None, "white")
        for number in range(20):
            left, top = 30 + number % 4 * 88, 300 + number // 4 * 96
            draw.rounded_rectangle((left, top, left + 64, top + 64), 15, icons[number * 5 % len(icons)])
        yield picture


def desktops() -> Iterator[Image.Image]:
    """A desktop with one of seven dialogs open, of two sizes in five places, or with none."""
    desktop = _desktop()
    yield desktop
    for text in _DIALOGS:
        for across, down in _PLACES:
            for width, height in _SIZES:
                picture = desktop.copy()
                draw = ImageDraw.Draw(picture)
                left, top = round(across * _DESKTOP[0] - width / 2), round(down * _DESKTOP[1] - height / 2)
                draw.rectangle((left, top, left + width, top + height), "#f0f0f0", "#606060")
                draw.rectangle((left, top, left + width, top + 28), "#3b6ea5")
                draw.text((left + 10, top + 6), text, "white", ImageFont.load_default(15))
                for number, button in enumerate(("OK", "Cancel")):
                    x, y = left + width - 190 + 95 * number, top + height - 42
                    draw.rectangle((x, y, x + 85, y + 28), "#dddddd", "#808080")
                    draw.text((x + 42, y + 14), button, "black", ImageFont.load_default(14), "mm")
                yield picture


def _desktop() -> Image.Image:
    picture = Image.radial_gradient("L").resize(_DESKTOP).convert("RGB")
    picture = Image.blend(picture, Image.new("RGB", _DESKTOP, "#1d6f6f"), 0.75)
    draw = ImageDraw.Draw(picture)
    for number in range(12):
        left, top = 24 + number // 6 * 100, 24 + number % 6 * 108
        draw.rectangle((left + 12, top, left + 60, top + 48), "#e8d8a0" if number % 3 else "#a0c0e8", "#404040")
        draw.text((left + 36, top + 62), f"Item {number + 1}", "white", ImageFont.load_default(14), "mm")
    draw.rectangle((300, 90, 1100, 600), "white", "#303030")
    draw.rectangle((300, 90, 1100, 122), "#3b6ea5")
    draw.text((312, 98), "Letter.txt - Editor", "white", ImageFont.load_default(16))
    lot = Random("desktop")
    for row in range(20):
        line = " ".join("x" * lot.randint(2, 9) for _ in range(lot.randint(6, 12)))
        draw.text((320, 140 + row * 22), line, "#303030", ImageFont.load_default(14))
    draw.rectangle((0, 728, _DESKTOP[0], _DESKTOP[1]), "#202830")
    draw.text((1300, 740), "10:24", "white", ImageFont.load_default(16))
    return picture
