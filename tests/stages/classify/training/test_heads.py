"""Heads on vectors: folds that are honest, standardisation, class weights, divergence, and equal bits."""

from __future__ import annotations

from dataclasses import replace

import keras
import numpy as np
import pytest

from stages.classify.training import heads
from stages.classify.training.dataset import Dataset
from stages.classify.training.run_records import CURVES, TrainingFailure
from stages.classify.training.training_parameters import TrainingParameters
from stages.classify.training.validation import TrainingResult
from tests.stages.classify.labelled_sets import DIMENSION, clouds, made

LINEAR = TrainingParameters("linear", epochs=20, learning_rate=0.05, batch_size=32)
MLP = TrainingParameters("mlp", head="mlp", hidden=(16, 8), dropout=0.2, epochs=20, learning_rate=0.02, batch_size=32)


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return made(clouds(noise=0.5))


@pytest.fixture(scope="module")
def linear(dataset: Dataset) -> TrainingResult:
    return heads.train(dataset, LINEAR)


@pytest.fixture(scope="module")
def trainings(dataset: Dataset, linear: TrainingResult) -> dict[str, TrainingResult]:
    """One of each kind of head, by its name."""
    return {"linear": linear, "mlp": heads.train(dataset, MLP)}


def accuracy(dataset: Dataset, trained: TrainingResult) -> float:
    return float((trained.logits.argmax(axis=1) == dataset.codes[dataset.training]).mean())


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_what_can_be_learnt_is_learnt(head: str, dataset: Dataset, trainings: dict[str, TrainingResult]) -> None:
    trained = trainings[head]
    assert accuracy(dataset, trained) > 0.8
    assert (trained.held_out.argmax(axis=1) == dataset.codes[dataset.unseen]).mean() > 0.8
    assert {name: len(curve) for name, curve in trained.curves.items()} == dict.fromkeys(CURVES, 20)
    assert trained.curves["loss"][-1] < trained.curves["loss"][0]
    assert trained.logits.dtype == trained.held_out.dtype == np.float32


def test_labels_by_chance_are_not_learnt() -> None:
    """Each picture is predicted by a head that has not seen it: memory would give all of these."""
    whole = made(clouds(300, noise=0.5))
    by_chance = replace(whole, codes=np.random.default_rng(0).integers(0, 3, 300).astype(np.int32))
    trained = heads.train(by_chance, replace(MLP, hidden=(64,), dropout=0.0, epochs=60))
    assert trained.curves["accuracy"][-1] > 0.6
    assert accuracy(by_chance, trained) < 0.45


def test_the_network_gives_the_logits_of_the_held_out_pictures(dataset: Dataset, linear: TrainingResult) -> None:
    given = np.asarray(linear.network(dataset.vectors[dataset.unseen]))
    np.testing.assert_allclose(given, linear.held_out, rtol=1e-5, atol=1e-5)
    assert [layer.name for layer in linear.network.layers] == ["vectors", "standardise", "logits"]
    assert linear.weights == 3 * DIMENSION + 3


def test_the_first_layer_standardises_the_training_pictures(dataset: Dataset, linear: TrainingResult) -> None:
    layer = keras.Model(linear.network.inputs, linear.network.get_layer("standardise").output)
    given = np.asarray(layer(dataset.vectors[dataset.training]))
    np.testing.assert_allclose(given.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(given.std(axis=0), 1, atol=1e-4)


def test_a_number_that_never_changes_does_no_harm(dataset: Dataset) -> None:
    vectors = dataset.vectors.copy()
    vectors[dataset.training, 3] = 5.0
    vectors[dataset.unseen, 3] = 5.1
    trained = heads.train(replace(dataset, vectors=vectors), LINEAR)
    assert np.abs(trained.held_out).max() < 100
    assert (trained.held_out.argmax(axis=1) == dataset.codes[dataset.unseen]).mean() > 0.8


def test_equal_inputs_give_equal_bits(dataset: Dataset, trainings: dict[str, TrainingResult]) -> None:
    one, other = trainings["mlp"], heads.train(dataset, MLP)
    np.testing.assert_array_equal(one.logits, other.logits)
    np.testing.assert_array_equal(one.held_out, other.held_out)
    assert one.curves == other.curves
    for a, b in zip(one.network.get_weights(), other.network.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_seed_changes_the_order(dataset: Dataset, linear: TrainingResult) -> None:
    other = heads.train(dataset, replace(LINEAR, seed=1))
    assert not np.array_equal(other.logits, linear.logits)
    assert accuracy(dataset, other) == pytest.approx(accuracy(dataset, linear), abs=0.1)


def test_pictures_that_are_held_out_train_nothing(dataset: Dataset, linear: TrainingResult) -> None:
    vectors = dataset.vectors.copy()
    vectors[dataset.unseen] = 1e6
    np.testing.assert_array_equal(heads.train(replace(dataset, vectors=vectors), LINEAR).logits, linear.logits)


def test_a_head_for_some_rows_is_that_of_its_fold(dataset: Dataset, linear: TrainingResult) -> None:
    rows, folds = dataset.training, dataset.folds(LINEAR.folds)
    network = heads.fitting(dataset, LINEAR)(rows[folds != 2], 2)
    given = np.asarray(network(dataset.vectors[rows[folds == 2]]))
    np.testing.assert_allclose(given, linear.logits[folds == 2], rtol=1e-4, atol=1e-4)


def test_balanced_weights_make_labels_equal() -> None:
    codes = np.array([0, 0, 0, 1, 1, 0], np.int32)
    weights = heads.class_weights(codes, np.arange(4), 2, "balanced")
    assert weights[:4].sum() == pytest.approx(4)
    assert weights[:3].sum() == pytest.approx(weights[3])
    np.testing.assert_array_equal(heads.class_weights(codes, np.arange(4), 2, "none"), 1)


@pytest.mark.only_in_all
def test_a_rare_label_is_found_more_often_with_balanced_weights() -> None:
    labels = {name: label for name, label in clouds(400, noise=2.5).items() if label != "cat" or name[-5] == "1"}
    rare = made(labels)
    cat = rare.labels.index("cat")

    def found(kind: str) -> int:
        trained = heads.train(rare, replace(LINEAR, class_weight=kind))
        return int((trained.logits.argmax(axis=1)[rare.codes[rare.training] == cat] == cat).sum())

    assert found("balanced") > found("none")


@pytest.mark.only_in_all
def test_smoothing_makes_probabilities_less_sure(dataset: Dataset, linear: TrainingResult) -> None:
    smooth = heads.train(dataset, replace(LINEAR, label_smoothing=0.3))
    assert np.ptp(smooth.logits, axis=1).mean() < np.ptp(linear.logits, axis=1).mean()


def test_a_training_that_diverges_is_a_failure_with_its_reason(dataset: Dataset) -> None:
    wild = replace(LINEAR, learning_rate=10.0, weight_decay=1.0, epochs=100)
    with pytest.raises(
        TrainingFailure, match=r"the training diverged in epoch \d+ of 100: its loss .* Lower learning_rate"
    ):
        heads.train(dataset, wild)


def test_batches_of_one_picture_train() -> None:
    small = made(clouds(30, noise=0.5))
    trained = heads.train(small, replace(LINEAR, batch_size=1, epochs=5))
    assert accuracy(small, trained) > 0.5


def test_a_fold_without_pictures_is_passed_over_and_a_batch_may_be_larger_than_all() -> None:
    few = made(clouds(9, noise=0.1), share=0)
    assert len({*few.folds(20).tolist()}) < 20
    trained = heads.train(few, replace(LINEAR, folds=20))
    assert np.isfinite(trained.logits).all()
    assert trained.logits.shape == (9, 3)


def test_pictures_that_are_all_in_one_fold_cannot_be_validated() -> None:
    lot = made(clouds(40), share=0)
    first = np.flatnonzero(lot.folds(2) == 0)
    one = replace(
        lot,
        ids=[lot.ids[row] for row in first],
        codes=lot.codes[first],
        vectors=lot.vectors[first],
        held_out=lot.held_out[first],
    )
    with pytest.raises(TrainingFailure, match="training pictures are in one fold, so nothing can be validated"):
        heads.train(one, replace(LINEAR, folds=2))
