"""Two classifiers compared by their predictions alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from stages.classify import classifier_comparison
from stages.classify.classifier_comparison import ClassifierPredictions
from stages.classify.held_out_pictures import HeldOutPictures
from stages.record.origin import Origin

BACKBONE = Origin("ab" * 32, "pad", 224, 2, "small at 224 px")


def unseen(labels: Sequence[str]) -> HeldOutPictures:
    ids = [f"{row:064x}" for row in range(len(labels))]
    return HeldOutPictures(ids, labels, np.zeros((len(ids), 2), np.float32), [b""] * len(ids), BACKBONE, 0.2)


def side(
    predicted: Sequence[str], labels: Sequence[str] = ("a", "b", "c"), by_thumbnails: bool = False
) -> ClassifierPredictions:
    return ClassifierPredictions("run", labels, predicted, BACKBONE, by_thumbnails)


def test_a_difference_beyond_chance() -> None:
    own = ["a"] * 40 + ["b"] * 40
    told = classifier_comparison.compare_classifiers(unseen(own), side(own), side(["a"] * 40 + ["b"] * 28 + ["c"] * 12))
    assert (told["candidate"]["right"], told["current"]["right"]) == (80, 68)
    assert told["difference"] == 0.15
    assert 0 < told["low"] < 0.15 < told["high"]
    assert told["p"] == pytest.approx(2 * 0.5**12, abs=1e-6)
    assert told["macro"]["difference"] == 0.15
    assert [row["label"] for row in told["per_label"]] == ["b", "a"]


def test_equal_classifiers_do_not_differ() -> None:
    own = ["a", "b", "c"]
    told = classifier_comparison.compare_classifiers(unseen(own), side(["a", "a", "a"]), side(["a", "a", "a"]))
    assert [told[name] for name in ("difference", "low", "high", "p")] == [0, 0, 0, 1]


def test_labels_that_neither_knows_are_wrong_for_both() -> None:
    told = classifier_comparison.compare_classifiers(unseen(["a", "new"]), side(["a", "b"]), side(["a", "c"]))
    for name in ("candidate", "current"):
        assert (told[name]["right"], told[name]["of"], told[name]["unknown"]["labels"]) == (1, 2, ["new"])
    assert told["per_label"][1] == {"label": "new", "pictures": 1, "candidate": None, "current": None}


def test_thousands_of_unknown_labels_are_examples() -> None:
    own = [f"{number:04d}" for number in range(3000)]
    told = classifier_comparison.compare_classifiers(unseen(own), side(["a"] * 3000), None)
    assert told["candidate"]["unknown"]["count"] == 3000
    assert told["candidate"]["unknown"]["labels"] == own[:20]


def test_thumbnails_that_are_scaled_up_are_a_caution() -> None:
    large = replace(side(["a"], by_thumbnails=True), origin=replace(BACKBONE, image_size=384))
    told = classifier_comparison.compare_classifiers(unseen(["a"]), side(["a"], by_thumbnails=True), large)
    assert len(told["cautions"]) == 2
    assert told["cautions"][0].startswith("the current model was trained on pictures of 384 px (pad)")
    assert told["cautions"][1].startswith("the current model takes pictures of 384 px, and was given thumbnails of 240")
