"""Names on drawn sheets: the font can draw every character, and no text is wider than its place."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from PIL import ImageFont

from stages.report.sheet_text import GLYPHS, fitted, font, spelt, wrapped


def test_the_font_has_the_expected_glyphs() -> None:
    nothing = bytes(font(40).getmask("\U0010ffff"))
    assert [glyph for glyph in GLYPHS if bytes(font(40).getmask(glyph)) == nothing] == []


def test_the_layout_does_not_depend_on_installed_libraries() -> None:
    assert font(14).layout_engine == ImageFont.Layout.BASIC


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plain name.jpg", "plain name.jpg"),
        ("Straße/Ærø – café.png", "Strasse/AEro - cafe.png"),
        ("cafe\u0301.png", "cafe.png"),
        ("ｆｕｌｌ ﬁ ¼", "full fi 1⁄4"),
        ("日本.jpg", "\\u{65e5}\\u{672c}.jpg"),
        ("emoji 🏖\ufe0f.png", "emoji \\u{1f3d6}.png"),
        ("bell\x07", "bell\\u{7}"),
        ("bytes \udcff", "bytes \\xff"),
        ("", ""),
    ],
)
def test_spelling(text: str, said: str) -> None:
    assert spelt(text) == said


@given(st.text())
def test_every_spelt_text_can_be_drawn(text: str) -> None:
    assert GLYPHS.issuperset(spelt(text))


@given(st.text(max_size=80), st.integers(40, 300))
def test_fitted_text_fits(text: str, width: int) -> None:
    said = fitted(text, 14, width)
    assert font(14).getlength(said) <= width
    assert said == spelt(text) or "…" in said


def test_the_middle_is_cut_first() -> None:
    said = fitted("holidays/a very long directory/and another one/picture-0042.jpeg", 14, 192)
    assert said.startswith("holid")
    assert said.endswith("picture-0042.jpeg"[-10:])


def test_as_much_as_fits_is_kept() -> None:
    text = "m" * 100
    kept = len(fitted(text, 14, 192)) - 1
    assert font(14).getlength("…" + "m" * kept) <= 192 < font(14).getlength("…" + "m" * (kept + 1))


def test_codes_are_not_split() -> None:
    said = fitted("写" * 40, 14, 192)
    assert said.replace("\\u{5199}", "") == "…"


@given(st.text(max_size=200), st.integers(60, 400))
def test_wrapped_lines_fit_and_keep_the_words(text: str, width: int) -> None:
    lines = wrapped(text, 14, width)
    assert all(font(14).getlength(line) <= width for line in lines)
    if not any("…" in line for line in lines):
        assert " ".join(lines).split() == spelt(text).split()
