"""Templates: what they show of any text, and a value that is missing."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given, strategies as st
from jinja2 import UndefinedError

from stages.datum.text_format import visible
from stages.report import markup


@given(st.text())
def test_any_text_is_shown_as_it_is(given: str) -> None:
    """In an element; and once only, in a part of another template."""
    page = markup.fill("rows.html", heads=(), lines=[(given, markup.part("rows.html", heads=(given,), lines=()))])
    shown = re.search(r"<td>(.*?)</td><td>.*<th>(.*?)</th>", page, re.DOTALL)
    assert shown is not None
    assert [html.unescape(each) for each in shown.groups()] == [visible(given)] * 2
    assert not set("\"'") & set(shown[1])


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="'heads' is undefined"):
        markup.fill("rows.html", lines=())
