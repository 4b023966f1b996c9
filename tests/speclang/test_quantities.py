"""Quantities: how they are written, and the recorded answers of Kubernetes' own parser."""

import json
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from speclang import quantities

RECORDED = json.loads(Path(__file__).with_name("quantities.json").read_text())["quantities"]

POWERS = {"": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}


@given(st.decimals(0, 10**6, places=3), st.sampled_from(list(POWERS)), st.booleans())
def test_suffixes_are_powers(number: Decimal, suffix: str, binary: bool) -> None:
    base, end = (1024, "i") if binary and suffix else (1000, "")
    text = f"{number}{suffix.upper() if end else suffix}{end}"
    value = Fraction(number) * base ** POWERS[suffix]
    assert quantities.parse(text) == (min(value, Fraction(2**63 - 1)) if end else value)


@given(st.integers(0, 10**6), st.integers(-9, 9))
def test_exponents(number: int, exponent: int) -> None:
    assert quantities.parse(f"{number}e{exponent}") == number * Fraction(10) ** exponent


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5", Fraction(3, 2)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("250m", Fraction(1, 4)),
        ("+2", 2),
        ("-1Gi", -(2**30)),
    ],
)
def test_ways_of_writing(text: str, value: Fraction | int) -> None:
    assert quantities.parse(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "1GB",
        "1 Gi",
        "1g",
        "1Gib",
        "1ki",
        "1KiB",
        "Gi",
        "1e",
        "NaN",
        "Infinity",
        "1,5",
        "0x10",
        "1e9999",
        "9" * 5000,
    ],
)
def test_texts_that_are_not_quantities(text: str) -> None:
    assert quantities.parse(text) is None


def test_kubernetes_reads_the_same() -> None:
    for text, number in RECORDED.items():
        if number is not None and not re.match("[0-9.+-]*[0-9]", text):
            # A unit without a number, which Kubernetes takes for 0.
            assert Decimal(number) == 0
            assert quantities.parse(text) is None, text
        else:
            assert quantities.parse(text) == (None if number is None else Fraction(Decimal(number))), text
