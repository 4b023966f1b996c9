"""Counts, distances and printable text."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from stages.datum import text_format


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "0"),
        (0.5, "0.5000"),
        (12.3456, "12.35"),
        (999.99, "1000"),
        (1234.5, "1234"),
        (1e-7, "1.00e-07"),
        (1e9, "1000000000"),
    ],
)
def test_distances(value: float, said: str) -> None:
    assert text_format.distance(value) == said


@given(st.floats(0, 2**100, width=32))
def test_only_zero_reads_as_zero(value: float) -> None:
    said = text_format.distance(value)
    assert (float(said) == 0) == (value == 0)
    assert not said.endswith(".")
    assert float(said) == pytest.approx(value, rel=1e-2)


def test_counts_agree_with_their_nouns() -> None:
    assert text_format.counted(1, "picture", "pictures") == "1 picture"
    assert text_format.counted(0, "picture", "pictures") == "0 pictures"
    assert text_format.counted(2000, "picture", "pictures") == "2,000 pictures"


@pytest.mark.parametrize(
    ("place", "said"),
    [((52.5186083, 13.3761111), "52.51861° N, 13.37611° E"), ((-33.9, -151.25), "33.90000° S, 151.25000° W")],
)
def test_a_place_names_its_hemispheres(place: tuple[float, float], said: str) -> None:
    assert text_format.place(*place) == said
