"""Text on drawn sheets: the one font inside Pillow, and names transliterated and shortened for it.

Knows text and widths only, no sheets. All results depend on the text and on Pillow's version alone.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from PIL import ImageFont

GLYPHS = frozenset(map(chr, range(0x20, 0x7F))) | frozenset("©«°±´·»‘’“”…‹›⁄™")
"""The characters that Pillow's font can draw."""

_LOOKALIKES = {
    "ß": "ss", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O", "đ": "d", "Đ": "D", "ł": "l", "Ł": "L",
    "ı": "i", "þ": "th", "Þ": "Th", "ð": "d", "–": "-", "—": "-", "−": "-", "×": "x",
}  # fmt: skip

_INVISIBLE = frozenset("\u200b\u200c\u200d\ufe0e\ufe0f\ufeff")  # joiners and selectors of glyphs we cannot draw

_CODE_OR_CHARACTER = re.compile(r"\\u\{[0-9a-f]+\}|\\x[0-9a-f]{2}|.")


@cache
def font(size: int) -> ImageFont.FreeTypeFont:
    """Pillow's own font, with `size` in pixels.

    Uses Pillow's own layout: by default, libraqm takes over on machines that have libfribidi.
    """
    own = ImageFont.load_default(size)
    if not isinstance(own, ImageFont.FreeTypeFont):
        raise RuntimeError("this Pillow was built without FreeType; install the wheel that requirements.lock names")
    return own.font_variant(layout_engine=ImageFont.Layout.BASIC)


def spelt(text: str) -> str:
    """The text in characters of `GLYPHS`, for people; it cannot be converted back.

    Accents are dropped. A character without a similar one becomes its code, such as \\u{1f431}, or \\xff for a byte
    that is not UTF-8.
    """
    return "".join(map(_spelt_character, unicodedata.normalize("NFC", text)))


def fitted(text: str, size: int, width: float) -> str:
    """`text` spelt and, if wider than `width` pixels, with an ellipsis in place of its middle.

    The end of a name tells more than its beginning (the number, the suffix), so more of it is kept.
    """
    whole = spelt(text)
    if font(size).getlength(whole) <= width:
        return whole
    cells = _CODE_OR_CHARACTER.findall(whole)
    fewest, most = 0, len(cells) - 1  # of cells kept
    while fewest < most:
        kept = (fewest + most + 1) // 2
        if font(size).getlength(_shortened(cells, kept)) <= width:
            fewest = kept
        else:
            most = kept - 1
    return _shortened(cells, fewest)


def wrapped(text: str, size: int, width: float) -> list[str]:
    """`text` spelt and broken between words into lines of at most `width` pixels; longer words are shortened."""
    lines: list[str] = []
    for word in spelt(text).split():
        if lines and font(size).getlength(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(fitted(word, size, width))
    return lines


def _shortened(cells: list[str], kept: int) -> str:
    head = kept * 2 // 5
    return "".join([*cells[:head], "…", *cells[len(cells) - (kept - head) :]])


@cache
def _spelt_character(character: str) -> str:
    if character in GLYPHS:
        return character
    if character in _INVISIBLE:
        return ""
    if character in _LOOKALIKES:
        return _LOOKALIKES[character]
    if "\udc80" <= character <= "\udcff":  # a byte of a file name that is not UTF-8, as Python represents it
        return f"\\x{ord(character) - 0xDC00:02x}"
    plain = "".join(c for c in unicodedata.normalize("NFKD", character) if not unicodedata.combining(c))
    return plain if plain and GLYPHS.issuperset(plain) else f"\\u{{{ord(character):x}}}"
