"""Text set in columns: real sentences, from the docstrings of Python's standard library, and their lines on a page.
Knows no document."""

import ast
import itertools
import re
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import ImageDraw, ImageFont

Face = ImageFont.FreeTypeFont | ImageFont.ImageFont

_SHORTEST = 80  # letters of a paragraph; what is shorter is mostly a list of arguments


@dataclass(frozen=True, slots=True)
class Line:
    """The words of a line, and whether it ends its paragraph."""

    words: tuple[str, ...]
    last: bool


def paragraphs(modules: Sequence[str]) -> Iterator[str]:
    """The paragraphs of the docstrings of modules of the standard library, such as `email/message`, without examples.
    They are the same on every machine with the same minor version of Python, but for corrections."""
    library = Path(sysconfig.get_path("stdlib"))
    for module in modules:
        for node in ast.walk(ast.parse((library / f"{module}.py").read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                for paragraph in re.split(r"\n\s*\n", ast.get_docstring(node) or ""):
                    text = " ".join(paragraph.split())
                    if len(text) >= _SHORTEST and ">>>" not in text and "---" not in text:
                        yield text


def broken(texts: Iterator[str], face: Face, width: float) -> Iterator[Line]:
    """Paragraphs as lines of at most this many pixels; a word that is longer has a line of its own."""
    space = face.getlength(" ")
    for text in texts:
        line: list[str] = []
        used = 0.0
        for word in text.split():
            length = face.getlength(word)
            if line and used + length > width:
                yield Line(tuple(line), last=False)
                line, used = [], 0.0
            line.append(word)
            used += length + space
        yield Line(tuple(line), last=True)


def fill(
    draw: ImageDraw.ImageDraw,
    box: tuple[float, float, float, float],
    lines: Iterator[Line],
    face: Face,
    justified: bool,
) -> bool:
    """Sets as many lines as fit into the box, which is in pixels; False if they ran out."""
    left, top, right, bottom = box
    ascent = face.getbbox("Ágy")
    lead = (ascent[3] - ascent[1]) * 1.35
    count = int((bottom - top) / lead)
    number = -1
    for number, line in enumerate(itertools.islice(lines, count)):
        y = top + number * lead
        if justified and not line.last and len(line.words) > 1:
            lengths = [face.getlength(word) for word in line.words]
            gap = (right - left - sum(lengths)) / (len(lengths) - 1)
            x = left
            for word, length in zip(line.words, lengths, strict=True):
                draw.text((x, y), word, "black", face)
                x += length + gap
        else:
            draw.text((left, y), " ".join(line.words), "black", face)
    return number + 1 == count
