"""The judgement of a training: temperature, probabilities, scores, calibration error, predictions."""

from __future__ import annotations

import keras
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from stages.classify.training import validation
from stages.classify.training.prediction_measures import SplitPredictions, calibration_error
from stages.classify.training.training_task import with_probabilities
from stages.classify.training.validation import TrainingResult
from stages.files.tables.prediction_table import CROSS_VALIDATION, HELD_OUT
from tests.stages.classify.labelled_sets import clouds, made

Logits = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int32]

SOME = hnp.arrays(np.float32, (12, 3), elements=st.floats(-50, 50, width=32))
CODES = hnp.arrays(np.int32, 12, elements=st.integers(0, 2))


def drawn(sharpness: float) -> tuple[Logits, Codes]:
    """Logits, and labels drawn with their probabilities; then the logits times `sharpness`."""
    lot = np.random.default_rng(0)
    logits = lot.normal(scale=2, size=(20_000, 3)).astype(np.float32)
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    codes = (lot.random((20_000, 1)) > chances.cumsum(axis=1)).sum(axis=1).clip(0, 2).astype(np.int32)
    return logits * np.float32(sharpness), codes


def error_of(probabilities: npt.NDArray[np.float64], codes: Codes) -> float:
    rows, best = np.arange(len(codes)), probabilities.argmax(axis=1)
    given = SplitPredictions(codes.astype(np.int64), best, probabilities[rows, best], probabilities[rows, codes])
    return calibration_error(given)


@pytest.mark.parametrize("sharpness", [0.25, 1.0, 4.0])
def test_the_temperature_undoes_false_sureness(sharpness: float) -> None:
    logits, codes = drawn(sharpness)
    found = validation.fitted(logits, codes)
    assert found == pytest.approx(sharpness, rel=0.05)
    assert error_of(validation.softmax(logits, found), codes) < 0.02
    if sharpness != 1:
        assert error_of(validation.softmax(logits, 1.0), codes) > 0.05


@given(SOME, CODES)
def test_no_other_temperature_is_better(logits: Logits, codes: Codes) -> None:
    found = validation.fitted(logits, codes)
    assert validation.COLDEST <= found <= validation.HOTTEST
    doubt = validation.doubt(len(codes))
    least = validation.loss(logits, codes, found, doubt)
    for other in np.geomspace(validation.COLDEST, validation.HOTTEST, 30):
        assert least <= validation.loss(logits, codes, float(other), doubt) + 1e-6


@pytest.mark.parametrize("pictures", [3, 30, 3000])
def test_pictures_without_an_error_do_not_make_it_certain(pictures: int) -> None:
    codes = (np.arange(pictures) % 3).astype(np.int32)
    logits = np.eye(3, dtype=np.float32)[codes]
    found = validation.softmax(logits, validation.fitted(logits, codes))
    np.testing.assert_allclose(found.max(axis=1), 1 - 2 / 3 / (pictures + 2), atol=1e-3 / pictures)


@given(SOME, CODES, st.floats(0.05, 20), st.floats(0, 1))
def test_the_loss_is_the_cross_entropy_of_its_targets(
    logits: Logits, codes: Codes, temperature: float, share: float
) -> None:
    targets = np.eye(3)[codes] * (1 - share) + share / 3
    probabilities = np.maximum(validation.softmax(logits, temperature), np.finfo(np.float64).tiny)
    expected = -(targets * np.log(probabilities)).sum(axis=1).mean()
    if probabilities.min() > 1e-300:
        assert validation.loss(logits, codes, temperature, share) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(SOME, st.floats(0.05, 20))
def test_probabilities_are_those_of_keras(logits: Logits, temperature: float) -> None:
    found = validation.softmax(logits, temperature)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(found, np.asarray(keras.ops.softmax(logits / np.float32(temperature))), atol=1e-3)


def test_the_calibration_error_is_that_of_its_definition() -> None:
    probabilities = np.array([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6], [0.0, 1.0]])
    codes = np.array([0, 1, 1, 1], np.int32)
    assert error_of(probabilities, codes) == pytest.approx((2 * 0.4 + 0.4 + 0.0) / 4)


def test_a_training_is_judged_by_pictures_that_it_had_not_seen() -> None:
    dataset = made(clouds(60))
    own = np.eye(3, dtype=np.float32)[dataset.codes] * 4
    wrong = dataset.training[:5]
    own[wrong] = np.roll(own[wrong], 1, axis=1)
    network = keras.Sequential([keras.Input((8,)), keras.layers.Dense(3, name="logits")])
    judged = validation.judge(dataset, TrainingResult(network, own[dataset.training], own[dataset.unseen], {}, 27))
    assert (judged.cross_validation.right, judged.cross_validation.of) == (
        len(dataset.training) - 5,
        len(dataset.training),
    )
    assert judged.held_out is not None
    assert (judged.held_out.right, judged.held_out.of) == (len(dataset.unseen), len(dataset.unseen))
    table = judged.predictions
    assert (table.ids, table.sources) == (dataset.ids, dataset.sources)
    assert [split == HELD_OUT for split in table.splits] == dataset.held_out.tolist()
    assert {*table.splits} == {HELD_OUT, CROSS_VALIDATION}
    differ = [row for row in range(60) if table.labels[row] != table.predicted[row]]
    assert differ == wrong.tolist()
    np.testing.assert_array_equal(table.probabilities == table.true_probabilities, ~np.isin(np.arange(60), wrong))


def test_without_held_out_pictures_there_is_no_score_of_them() -> None:
    dataset = made(clouds(30), share=0)
    logits = np.eye(3, dtype=np.float32)[dataset.codes]
    network = keras.Sequential([keras.Input((8,)), keras.layers.Dense(3, name="logits")])
    judged = validation.judge(dataset, TrainingResult(network, logits, logits[:0], {}, 27))
    assert judged.held_out is None
    assert validation.COLDEST < judged.temperature < 1


def test_a_finished_network_gives_probabilities() -> None:
    taken = keras.Input((8,), name="vectors")
    network = keras.Model(taken, keras.layers.Dense(3, name="logits")(taken), name="classifier")
    values = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
    given = np.asarray(with_probabilities(network, 2.5)(values))
    np.testing.assert_allclose(given, validation.softmax(np.asarray(network(values)), 2.5), atol=1e-6)
