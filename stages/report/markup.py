"""The frame of every HTML page: a self-contained document that runs no scripts and loads nothing; texts and pictures in
it. Knows nothing of what a page is about."""

from __future__ import annotations

import html
from base64 import b64encode
from collections.abc import Iterable, Iterator

from stages.datum import text_format
from stages.report.style import STYLE

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def head(title: str, style: str = "") -> Iterator[str]:
    """The lines from the first one to the beginning of the body. title: plain text. style: CSS beside the pages'."""
    yield "<!doctype html>"
    yield '<html lang="en">'
    yield "<head>"
    yield '<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{text(_POLICY)}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{text(title)} · lookalike</title>"
    yield f"<style>{STYLE}{style}</style>"
    yield "</head>"
    yield "<body>"


def end() -> Iterator[str]:
    """The lines after the body."""
    yield "</body>"
    yield "</html>"


def picture(jpeg: bytes | None, alternative: str) -> str:
    """A picture of at most 224 × 224 pixels, or a blank of that size. alternative: plain text."""
    if jpeg is None:
        return '<div class="blank">no preview</div>'
    data = b64encode(jpeg).decode("ascii")
    return f'<img src="data:image/jpeg;base64,{data}" alt="{text(alternative)}" width="224" height="224">'


def items(kind: str, shown: Iterable[str]) -> Iterator[str]:
    """A list of texts of that class; nothing for an empty one."""
    lines = [f"<li><bdi>{text(item)}</bdi></li>" for item in shown]
    if lines:
        yield f'<ul class="{kind}">{"".join(lines)}</ul>'


def text(plain: str) -> str:
    """The text as HTML, in an element or in quotes."""
    return html.escape(text_format.visible(plain))
