"""Classifiers in memory: two files that belong together, and answers that depend on their row alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from stages.backbone.backbones import save_keras
from stages.classify import classifier, classifier_description
from stages.classify.classifier import Classifier
from stages.classify.training.training_parameters import InputKind
from stages.datum.contract import StageError
from tests.stages.classify.networks import DIMENSION, SIDE, described, network


def values(takes: InputKind, number: int) -> npt.NDArray[Any]:
    lot = np.random.default_rng(1)
    if takes == "vectors":
        return lot.normal(size=(number, DIMENSION)).astype(np.float32)
    return lot.integers(0, 256, (number, SIDE, SIDE, 3)).astype(np.uint8)


@pytest.mark.parametrize("takes", ["vectors", "pictures"])
def test_probabilities_are_the_networks(takes: InputKind, tmp_path: Path) -> None:
    save_keras(network(takes=takes), tmp_path / "model.keras")
    (tmp_path / "labels.json").write_bytes(classifier_description.format_description(described(takes=takes)))
    opened = classifier.open(tmp_path)
    assert opened.chosen == described(takes=takes)
    given = opened(values(takes, 70))
    assert given.dtype == np.float32
    assert given.shape == (70, 3)
    np.testing.assert_allclose(given, network(takes=takes)(values(takes, 70)), atol=1e-6)
    np.testing.assert_allclose(given.sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("takes", ["vectors", "pictures"])
def test_an_answer_does_not_depend_on_its_batch(takes: InputKind) -> None:
    made = Classifier(network(takes=takes), described(takes=takes))
    some = values(takes, 70)
    together = made(some)
    for row in (0, 31, 32, 69):
        np.testing.assert_array_equal(made(some[row : row + 1]), together[row : row + 1])


def test_nothing_gives_nothing() -> None:
    assert Classifier(network(), described())(values("vectors", 0)).shape == (0, 3)


@pytest.mark.parametrize(
    "wrong",
    [np.zeros((2, DIMENSION + 1), np.float32), np.zeros((2, DIMENSION)), np.zeros((2, SIDE, SIDE, 3), np.uint8)],
)
def test_other_values_are_refused(wrong: npt.NDArray[Any]) -> None:
    with pytest.raises(StageError, match=r"this classifier takes vectors, float32 \(6,\) each, not "):
        Classifier(network(), described())(wrong)


def test_numbers_that_are_not_finite_are_an_error() -> None:
    model = network()
    model.set_weights([np.full_like(each, np.nan) for each in model.get_weights()])
    with pytest.raises(StageError, match="the run linear gives probabilities that are not finite"):
        Classifier(model, described())(values("vectors", 1))


@pytest.mark.parametrize(
    ("model", "labels", "takes"),
    [
        ({}, ("a", "b"), "vectors"),
        ({}, ("a", "b", "c"), "pictures"),
        ({"takes": "pictures"}, ("a", "b", "c"), "vectors"),
    ],
)
def test_files_of_two_runs_are_refused(model: dict[str, Any], labels: tuple[str, ...], takes: InputKind) -> None:
    with pytest.raises(StageError, match="model.keras and labels.json do not belong together: the model maps"):
        Classifier(network(**model), described(labels, takes))


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="there is no labels.json: a classifier is two files"):
        classifier.open(tmp_path)
    (tmp_path / "labels.json").write_bytes(classifier_description.format_description(described()))
    with pytest.raises(StageError, match="there is no model.keras"):
        classifier.open(tmp_path)
