"""Precision is counted correctly, and the histogram baseline is right where colours differ and wrong where they do
not."""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, strategies as st

from pipelines.library.datasets.samples import label_of, library_crops
from pipelines.library.quality import BINS, histogram, judge, judge_histogram, precision
from stages.backbone.photographs import open_photograph

Picture = npt.NDArray[np.uint8]


def _line(sources: list[str], *neighbours: list[str]) -> str:
    return json.dumps({"query": "q", "sources": sources, "neighbors": [{"sources": paths} for paths in neighbours]})


def test_labels_are_compared_by_name() -> None:
    lines = [
        _line(["queries/cat-1.png"], ["cat-04.jpg"], ["coffee-02.png"], ["deep/er/cat-07.jpg"]),
        _line(["queries/moon-1.png"], ["cell-01.jpg"]),
    ]
    assert judge(lines, label_of) == [[True, False, True], [False]]


def test_one_label_in_common_is_enough() -> None:
    assert judge([_line(["cat-1.png", "dog-1.png"], ["owl-1.png", "dog-9.png"])], label_of) == [[True]]


def test_precision_counts_missing_neighbours_as_wrong() -> None:
    verdicts = [[True, True, False], [True], []]
    assert precision(verdicts, 1) == pytest.approx(2 / 3)
    assert precision(verdicts, 3) == pytest.approx(3 / 9)


@pytest.mark.parametrize(("verdicts", "k"), [([], 1), ([[True]], 0)])
def test_precision_of_nothing_is_refused(verdicts: list[list[bool]], k: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        precision(verdicts, k)


@given(st.lists(st.lists(st.booleans(), max_size=5), min_size=1), st.integers(1, 5))
def test_precision_is_a_fraction(verdicts: list[list[bool]], k: int) -> None:
    assert 0 <= precision(verdicts, k) <= 1
    assert precision([[True] * k for _ in verdicts], k) == 1


def test_histogram_is_a_unit_vector_over_rgb_cells() -> None:
    half_red = np.zeros((4, 4, 3), np.uint8)
    half_red[:2, :, 0] = 255
    counted = histogram(half_red)
    assert counted.shape == (BINS**3,)
    assert np.flatnonzero(counted).tolist() == [0, (BINS - 1) * BINS**2]
    assert np.linalg.norm(counted) == pytest.approx(1)


def test_histogram_distinguishes_photographs_of_different_colours() -> None:
    labels = ("retina", "hubble", "coffee")
    library = {f"{label}-{n}": picture for label in labels for n, picture in enumerate(_crops(label))}
    queries = {
        f"{label}-q": np.asarray(next(iter(library_crops(open_photograph(label), label, 9)))) for label in labels
    }
    assert precision(judge_histogram(library, queries, 3, label_of), 3) == 1


def test_equal_pictures_are_one_neighbour_with_both_labels() -> None:
    red, blue = (np.full((2, 2, 3), colour, np.uint8) for colour in ((255, 0, 0), (0, 0, 255)))
    library = {"cat-1": red, "dog-1": red, "owl-1": blue}
    assert judge_histogram(library, {"dog-q": red}, 3, label_of) == [[True, False]]


def test_nothing_to_compare_with() -> None:
    red = np.full((2, 2, 3), (255, 0, 0), np.uint8)
    assert judge_histogram({}, {"dog-q": red}, 3, label_of) == [[]]
    assert judge_histogram({"dog-1": red}, {}, 3, label_of) == []


def _crops(label: str) -> list[Picture]:
    return [np.asarray(crop.convert("RGB")) for crop in library_crops(open_photograph(label), label, 0)][:6]
