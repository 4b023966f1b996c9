"""Model cards: any text within Markdown."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import example, given, strategies as st
from markdown_it import MarkdownIt

from stages.classify.report.model_card import plain
from stages.datum.text_format import visible

MARKDOWN = MarkdownIt("commonmark").enable("table")


@given(st.text(min_size=1))
@example("- a")
@example("1. a")
@example("2) a")
@example("+")
@example("===")
@example("# a")
@example("a|b`c*d_e~~f~~")
@example("&amp; <b> &copy;")
@example("![a](b) [c]: d")
@example("\\")
@example("\\*")
def test_any_text_is_shown_as_it_is(given: str) -> None:
    table = MARKDOWN.render(f"| label |\n|---|\n| {plain(given)} |")
    cell = re.search(r"<td>(.*)</td>", table, re.DOTALL)
    shown = " ".join(visible(given).split(" ")).strip(" ")
    assert (html.unescape(cell[1]) if cell else "") == shown


@given(st.text(min_size=1))
@example("- a")
@example("1. a")
@example("2) a")
@example("+")
@example("===")
@example("---")
def test_a_text_that_begins_an_item_is_no_other_block(given: str) -> None:
    shown = MARKDOWN.render(f"- {plain(given)}, end")
    assert shown.count("<li>") == 1
    assert not re.search(r"<(ol|h\d|hr|pre|blockquote|code|em|strong|a|img)\b", shown)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("https://example.org", r"https\://example.org"),
        ("www.example.org", r"www\.example.org"),
        ("someone@example.org", r"someone\@example.org"),
        ("b.csv, line 5: a line", "b.csv, line 5: a line"),
    ],
)
def test_a_text_is_not_a_link(given: str, said: str) -> None:
    """Where readers make links of addresses, as GitHub does."""
    assert plain(given) == said
