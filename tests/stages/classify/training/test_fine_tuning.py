"""Fine-tuning learns, gives equal bytes for equal inputs, goes on from any round, and refuses what it cannot train."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import keras
import numpy as np
import pytest

from stages.backbone import devices
from stages.backbone.backbones import load_keras, save_keras
from stages.classify.training import fine_tuning, heads, joint_network, trainer, training_loop
from stages.classify.training.checkpoint_store import CheckpointStore, TrainingState
from stages.classify.training.dataset import Dataset
from stages.classify.training.run_records import CURVES, TrainingFailure
from stages.classify.training.training_parameters import AugmentationParameters, FineTuneParameters, TrainingParameters
from stages.classify.training.training_pixels import frame_thumbnails
from stages.classify.training.validation import TrainingResult
from stages.datum.contract import StageError
from stages.record.framing import PAD, Framing
from tests.stages.classify import finetuning_sets

UNCHANGED = AugmentationParameters(False, 0, 0, 0, 0, 0)
TUNE = FineTuneParameters(epochs=2, learning_rate=0.003, batch_size=16)


@dataclass(frozen=True)
class Set:
    """A data set and the directory of the stage's inputs."""

    dataset: Dataset
    directory: Path

    def train(self, tune: FineTuneParameters, **others: object) -> TrainingResult:
        """Fine-tunes with quick parameters of the head."""
        chosen = replace(TrainingParameters("tuned", epochs=5, folds=2), **others, fine_tune=tune)  # type: ignore[arg-type]
        return fine_tuning.train(self.dataset, chosen, tune, self.directory / "models", {})


@pytest.fixture(scope="module")
def set(tmp_path_factory: pytest.TempPathFactory) -> Set:
    """Sixty pictures of three labels."""
    devices.prepare({})
    directory = tmp_path_factory.mktemp("tuned")
    return Set(finetuning_sets.written(directory, finetuning_sets.backbone(), *finetuning_sets.pictures(20)), directory)


@pytest.fixture(scope="module")
def tuned(set: Set) -> TrainingResult:
    """The training with TUNE."""
    return set.train(TUNE)


@pytest.mark.only_in_all
def test_a_network_that_has_not_learnt_yet_is_the_head_on_the_backbone(set: Set) -> None:
    before = heads.train(set.dataset, TrainingParameters("linear", epochs=5, folds=2))
    after = set.train(FineTuneParameters(epochs=1, learning_rate=1e-12, augmentation=UNCHANGED))
    assert np.allclose(before.held_out, after.held_out, atol=1e-3)
    assert np.allclose(before.logits, after.logits, atol=1e-3)
    # Neither batch normalisation nor dropout of the backbone changes in training what it computes.
    assert after.curves["loss"][0] < before.curves["loss"][-1] + 0.05


def test_it_learns_and_gives_what_a_training_gives(set: Set) -> None:
    after = set.train(FineTuneParameters(epochs=20, learning_rate=0.001, batch_size=16, augmentation=UNCHANGED))
    assert after.curves["loss"][-1] < after.curves["loss"][0] - 0.3
    assert list(after.curves) == list(CURVES)
    assert {len(each) for each in after.curves.values()} == {20}
    assert after.logits.shape == (len(set.dataset.training), 3)
    assert after.held_out.shape == (len(set.dataset.unseen), 3)
    assert after.weights == (3 * 9 * 16 + 16) + 2 * 16 + (16 * 9 * 16 + 16) + (16 * 3 + 3)
    right = after.logits.argmax(axis=1) == set.dataset.codes[set.dataset.training]
    assert right.mean() > 0.5


def test_another_seed_gives_others(set: Set, tuned: TrainingResult) -> None:
    assert finetuning_sets.numbers(set.train(TUNE, seed=1)) != finetuning_sets.numbers(tuned)


def test_the_saved_network_computes_the_same(set: Set, tuned: TrainingResult, tmp_path: Path) -> None:
    save_keras(tuned.network, tmp_path / "model.keras")
    unseen = frame_thumbnails(
        [set.dataset.thumbnails[row] for row in set.dataset.unseen], Framing(finetuning_sets.SIDE, PAD)
    )
    loaded = load_keras(tmp_path / "model.keras")
    assert np.allclose(loaded.predict(unseen, verbose=0), tuned.held_out, atol=1e-5)


@pytest.mark.only_in_all
def test_the_last_layers_alone_are_trained(set: Set) -> None:
    before, head = finetuning_sets.backbone(), 16 * 3 + 3
    for layers, weights in ((2, 16 * 9 * 16 + 16 + 32), (1, 16 * 9 * 16 + 16)):
        some = finetuning_sets.backbone()
        assert joint_network.train_last(some, layers) == (layers, 3)
        assert joint_network.trained_numbers(some) == weights
    trained = set.train(replace(TUNE, layers=1))
    assert trained.weights == weights + head
    small = trained.network.get_layer("small")
    assert all(map(np.array_equal, small.get_layer("one").get_weights(), before.get_layer("one").get_weights()))
    assert not np.array_equal(small.get_layer("two").get_weights()[0], before.get_layer("two").get_weights()[0])


def test_statistics_of_batch_normalisation_do_not_change_but_scales_do(tuned: TrainingResult) -> None:
    scale, offset, mean, variance = tuned.network.get_layer("small").get_layer("norm").get_weights()
    before = finetuning_sets.backbone().get_layer("norm").get_weights()
    assert not np.array_equal(scale, before[0])
    assert not np.array_equal(offset, before[1])
    assert np.array_equal(mean, before[2])
    assert np.array_equal(variance, before[3])


@dataclass
class Interrupted:
    """Keeps every state, and ends the training after one of them."""

    first: TrainingState | None = None
    after: int | None = None
    states: list[TrainingState] = field(default_factory=list)

    def load(self) -> TrainingState | None:
        """The state to begin with."""
        return self.first

    def save(self, state: TrainingState) -> None:
        """Keeps a copy."""
        self.states.append(
            TrainingState({name: np.array(each) for name, each in state.arrays.items()}, dict(state.facts))
        )
        if len(self.states) == self.after:
            raise KeyboardInterrupt

    def delete(self) -> None:
        """Does nothing."""


@pytest.mark.only_in_all
def test_a_training_goes_on_from_every_round_to_the_same_bytes(
    set: Set, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tune = replace(TUNE, checkpoints=f"file://{tmp_path}", checkpoint_steps=1)
    others = {"head": "mlp", "hidden": (8,), "dropout": 0.5, "class_weight": "balanced"}
    every = Interrupted()
    monkeypatch.setattr(fine_tuning, "CheckpointStore", lambda *_: every)
    whole = finetuning_sets.numbers(set.train(tune, **others))
    positions = [tuple(state.facts[name] for name in ("training", "epoch", "step")) for state in every.states]
    assert positions[:2] == [(0, 0, 1), (0, 1, 0)]
    assert positions[-1] == (2, 2, 0)
    for position in ((1, 0, 0), (1, 1, 1)):  # between two folds, and within an epoch
        state = every.states[positions.index(position)]
        monkeypatch.setattr(fine_tuning, "CheckpointStore", lambda *_, state=state: Interrupted(state))
        assert finetuning_sets.numbers(set.train(tune, **others)) == whole


def test_a_checkpoint_of_other_pictures_labels_or_parameters_is_not_used(set: Set) -> None:
    chosen = TrainingParameters("tuned", fine_tune=TUNE)
    data = set.dataset

    def of(
        dataset: Dataset = data, parameters: TrainingParameters = chosen, environment: Mapping[str, str] = {}
    ) -> str:
        return fine_tuning.fingerprint(dataset, parameters, ["CPU:0"], environment)

    others = [
        of(replace(data, codes=np.roll(data.codes, 1))),
        of(replace(data, labels=[*data.labels[:-1], "z"])),
        of(replace(data, thumbnails=[*data.thumbnails[1:], data.thumbnails[0]])),
        of(replace(data, vectors=data.vectors + 1)),
        of(replace(data, origin=replace(data.origin, model="0" * 64))),
        of(parameters=replace(chosen, seed=1)),
        of(parameters=replace(chosen, fine_tune=replace(TUNE, epochs=3))),
        of(environment={"LOOKALIKE_STAGE": "train-2"}),
        fine_tuning.fingerprint(data, chosen, ["GPU:0", "GPU:1"], {}),
    ]
    assert len({of(), *others}) == len(others) + 1
    assert of() == of(parameters=replace(chosen, fine_tune=replace(TUNE, checkpoints="s3://b/c", checkpoint_steps=5)))


def test_equal_inputs_give_equal_bytes_beside_a_damaged_checkpoint_and_leave_none(
    set: Set, tuned: TrainingResult, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tune = replace(TUNE, checkpoints=f"file://{tmp_path}", checkpoint_steps=1)
    chosen = replace(TrainingParameters("tuned", epochs=5, folds=2), fine_tune=tune)
    print_ = fine_tuning.fingerprint(set.dataset, chosen, trainer.devices(), {})
    CheckpointStore(tune.checkpoints, "tuned", print_).save(TrainingState({}, {"training": 1}))
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    again = set.train(tune)
    assert finetuning_sets.numbers(again) == finetuning_sets.numbers(tuned)
    assert "is ignored: it is damaged" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    for name, trained in (("once", tuned), ("again", again)):
        save_keras(trained.network, tmp_path / name)
    assert (tmp_path / "once").read_bytes() == (tmp_path / "again").read_bytes()


def test_a_training_that_diverges_is_a_failed_run_with_its_reason(set: Set, tmp_path: Path) -> None:
    tune = replace(TUNE, learning_rate=1e30, checkpoints=f"file://{tmp_path}", checkpoint_steps=1)
    with pytest.raises(
        TrainingFailure, match=r"diverged in epoch \d of 2 of fold 1 of 2.*Lower fine_tune.learning_rate"
    ):
        set.train(tune)
    assert not list(tmp_path.iterdir())


def test_another_backbone_than_that_of_the_vectors_is_a_failed_run(set: Set, tmp_path: Path) -> None:
    other = replace(set.dataset, origin=replace(set.dataset.origin, model="ab" * 32))
    with pytest.raises(
        TrainingFailure, match="the repo models holds small at 32 px .* come from .*abab.*: push that model again"
    ):
        Set(other, set.directory).train(TUNE)
    with pytest.raises(StageError, match="the repo models does not hold a backbone: push one"):
        (tmp_path / "models").mkdir()
        Set(set.dataset, tmp_path).train(TUNE)


def test_a_url_without_a_bucket_is_a_failed_run_and_an_unreachable_one_a_failed_datum(set: Set, tmp_path: Path) -> None:
    with pytest.raises(TrainingFailure, match="fine_tune.checkpoints: s3:///runs has no bucket"):
        set.train(replace(TUNE, checkpoints="s3:///runs"))
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StageError, match="its bucket cannot be used"):
        set.train(replace(TUNE, checkpoints=f"file://{tmp_path}/file/runs"))


@pytest.mark.only_in_all
@pytest.mark.parametrize(
    ("build", "check"),
    [
        (lambda: finetuning_sets.backbone(batch=32), "takes batches of exactly 32 pictures"),
        (lambda: finetuning_sets.backbone(dtype="mixed_float16"), ""),
    ],
    ids=["fixed batch", "half precision"],
)
def test_unusual_backbones(tmp_path: Path, build: Callable[[], keras.Model], check: str) -> None:
    devices.prepare({})
    given = Set(finetuning_sets.written(tmp_path, build(), *finetuning_sets.pictures(12)), tmp_path)
    if check:
        with pytest.raises(TrainingFailure, match=check):
            given.train(TUNE)
        return
    curves = given.train(replace(TUNE, epochs=12, learning_rate=0.001, augmentation=UNCHANGED)).curves
    assert curves["loss"][-1] < curves["loss"][0]


def test_pictures_that_the_backbone_scales_up_are_worth_a_note(set: Set) -> None:
    assert training_loop.scaling_notes(set.dataset) == []
    (note,) = training_loop.scaling_notes(replace(set.dataset, origin=replace(set.dataset.origin, image_size=384)))
    assert "pictures of 384 px, but was trained on scaled-up thumbnails of 240 px at most" in note
