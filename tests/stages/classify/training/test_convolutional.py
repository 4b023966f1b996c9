"""A convolutional network learns from pixels, gives equal bytes for equal inputs, and validated by one fold or all."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from stages.backbone import devices
from stages.classify.training import convolutional
from stages.classify.training.dataset import Dataset
from stages.classify.training.run_records import CURVES
from stages.classify.training.training_parameters import ConvolutionalParameters, TrainingParameters
from stages.classify.training.training_pixels import frame_thumbnails
from stages.classify.training.validation import TrainingResult, judge
from stages.files.tables.prediction_table import CROSS_VALIDATION, HELD_OUT
from stages.record.framing import PAD, Framing
from tests.stages.classify import finetuning_sets

CHOSEN = ConvolutionalParameters((8, 16), epochs=6, batch_size=16, cross_validation=False)


@dataclass(frozen=True)
class Training:
    """A training of sixty pictures of three labels."""

    dataset: Dataset
    result: TrainingResult


def train(dataset: Dataset, chosen: ConvolutionalParameters = CHOSEN, folds: int = 4) -> TrainingResult:
    parameters = TrainingParameters("small", folds=folds, convolutional=chosen)
    return convolutional.train(dataset, parameters, chosen)


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Training:
    devices.prepare({})
    directory = tmp_path_factory.mktemp("convolutional")
    dataset = finetuning_sets.written(directory, finetuning_sets.backbone(), *finetuning_sets.pictures(20))
    return Training(dataset, train(dataset))


def test_one_network_is_validated_by_the_fold_that_it_leaves_out(training: Training) -> None:
    dataset, result = training.dataset, training.result
    left_out = dataset.divisions(4)[0].left_out
    assert result.validated is not None
    np.testing.assert_array_equal(result.validated, left_out)
    side = dataset.origin.image_size
    pixels = frame_thumbnails([dataset.thumbnails[row] for row in left_out], Framing(side, PAD))
    np.testing.assert_allclose(result.network(pixels), result.logits, rtol=1e-4, atol=1e-4)
    assert {name: len(curve) for name, curve in result.curves.items()} == dict.fromkeys(CURVES, 6)
    assert result.curves["accuracy"][-1] > 0.6
    judged = judge(dataset, result)
    assert judged.cross_validation.of == len(left_out)
    assert sorted(judged.predictions.ids) == list(judged.predictions.ids)
    splits = dict(zip(judged.predictions.ids, judged.predictions.splits, strict=True))
    wanted = {dataset.ids[row]: CROSS_VALIDATION for row in left_out}
    assert splits == wanted | {dataset.ids[row]: HELD_OUT for row in dataset.unseen}
    assert f"the {len(left_out)} pictures of one fold of 4" in result.notes[0]


def test_every_fold_is_left_out_in_turn(training: Training) -> None:
    dataset = training.dataset
    found = train(dataset, replace(CHOSEN, cross_validation=True, epochs=1), folds=2)
    assert found.validated is None
    assert not found.notes
    assert len(found.logits) == len(dataset.training) == judge(dataset, found).cross_validation.of


def test_equal_inputs_give_equal_bytes_and_pictures_that_do_not_fit_into_memory_are_made_again(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stages.classify.training.training_loop._KEPT", 0)
    assert finetuning_sets.numbers(train(training.dataset)) == finetuning_sets.numbers(training.result)
