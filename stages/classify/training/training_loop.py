"""The course of a training on pictures: for each fold, then on all of them, in epochs and steps, from any point on.

Owns the position, the results so far, and their way into checkpoints and back. Knows no backbone and no files.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.classify.training import epoch_batches, validation
from stages.classify.training.augmentation import augmented
from stages.classify.training.checkpoint_store import CheckpointStore, TrainingState
from stages.classify.training.dataset import Dataset, DatasetRows
from stages.classify.training.heads import class_weights
from stages.classify.training.joint_network import trained_numbers
from stages.classify.training.run_records import CURVES, TrainingFailure
from stages.classify.training.trainer import FORWARD, StepSums, Trainer, TrainingBatch
from stages.classify.training.training_parameters import (
    AugmentationParameters,
    ConvolutionalParameters,
    FineTuneParameters,
    TrainingParameters,
)
from stages.classify.training.training_pixels import LARGEST, frame_thumbnails
from stages.classify.training.validation import TrainingResult
from stages.datum.progress import Progress
from stages.record.framing import Framing, Pixels

WARM_UP = 0.1
"""Share of the steps in which the learning rate rises: the first steps of Adam are large whatever the gradients are."""

_KEPT = 256 << 20  # most bytes of a dataset's pixels that are kept; others are made from thumbnails in every epoch

_UNDER_WAY = 2  # steps that a device has been given and whose sums nobody has waited for


class TrainingPictures:
    """The pictures of a dataset as the backbone takes them, from their thumbnails; if they are small, all are kept as
    pixels. Both methods are called in several threads."""

    def __init__(self, dataset: Dataset, augmentation: AugmentationParameters, seed: int) -> None:
        self._dataset, self._augmentation, self._seed = dataset, augmentation, seed
        self._framing = Framing(dataset.origin.image_size, dataset.origin.fit)
        self._kept: Pixels | None = None
        if len(dataset) * 3 * self._framing.side**2 <= _KEPT:
            lots = epoch_batches.split_rows(np.arange(len(dataset)), FORWARD)
            self._kept = np.concatenate([pixels for _, pixels in epoch_batches.load_batches(self.plain, lots)])

    def plain(self, rows: DatasetRows) -> Pixels:
        """Those of some rows, uint8 (n, S, S, 3)."""
        if self._kept is not None:
            return self._kept[rows]
        return frame_thumbnails([self._dataset.thumbnails[row] for row in rows.tolist()], self._framing)

    def changed(self, rows: DatasetRows, epoch: int) -> Pixels:
        """The same, as an epoch sees them."""
        ids = [self._dataset.ids[row] for row in rows.tolist()]
        return augmented(self.plain(rows), self._augmentation, self._seed, epoch, ids)


class TrainingLoop:
    """All trainings of one run, in order: one for each fold, which leaves that out, and one on all training pictures.

    With `once` only the first of these is run, and pictures of the other folds have no logits.
    """

    def __init__(
        self,
        dataset: Dataset,
        parameters: TrainingParameters,
        tune: FineTuneParameters | ConvolutionalParameters,
        trainer: Trainer,
        begin: Callable[[int, DatasetRows], None],
        keeping: CheckpointStore | None = None,
        once: bool = False,
    ) -> None:
        """begin: gives the trainer's network the weights with which the training of a number, on some rows, starts.
        keeping: keeps the states, if anything does. Raises Failure if no fold can be left out."""
        self._dataset, self._parameters, self._tune = dataset, parameters, tune
        self._trainer, self._begin, self._keeping = trainer, begin, keeping
        self._pictures = TrainingPictures(dataset, tune.augmentation, parameters.seed)
        self._divisions = dataset.divisions(parameters.folds)[: 1 if once else None]
        self._once = once
        self._logits = np.zeros((len(dataset.training), len(dataset.labels)), np.float32)
        self._curves = np.zeros((len(self._divisions), tune.epochs, len(CURVES)))
        self._training, self._epoch, self._step, self._sums = 0, 0, 0, StepSums()
        self._progress = Progress(
            "pictures", self._pictures_until(0 if once else len(self._divisions), tune.epochs) + len(dataset.unseen)
        )

    def run(self) -> TrainingResult:
        """Trains from the last kept state, or from the beginning. Raises Failure for a training that diverges, and
        StageError if states cannot be kept."""
        self._resume()
        while self._training < len(self._divisions):
            self._train(self._divisions[self._training].rest)
            self._training, self._epoch = self._training + 1, 0
            self._save(between=True)
        if not self._once:
            self._train(self._dataset.training)
        first, means, notes = self._divisions[0], self._curves.mean(axis=0), scaling_notes(self._dataset)
        if self._once:
            notes.append(
                f"One network was trained. Cross-validation means the {len(first.left_out):,} pictures of one fold of "
                f"{self._parameters.folds}, which it was not trained on."
            )
        return TrainingResult(
            network=self._trainer.network,
            logits=self._logits[first.places] if self._once else self._logits,
            held_out=self._logits_of(self._dataset.unseen),
            curves={name: means[:, place].tolist() for place, name in enumerate(CURVES)},
            weights=trained_numbers(self._trainer.network),
            notes=notes,
            validated=first.left_out if self._once else None,
        )

    def _logits_of(self, rows: DatasetRows) -> npt.NDArray[np.float32]:
        """The logits of some rows, float32 (n, L), by the network as it is."""
        given = np.empty((len(rows), len(self._dataset.labels)), np.float32)
        begin = 0
        for some, pictures in epoch_batches.load_batches(self._pictures.plain, epoch_batches.split_rows(rows, FORWARD)):
            given[begin : begin + len(some)] = self._trainer.logits(pictures)
            begin += len(some)
            self._progress.add(len(some))
        return given

    def _train(self, rows: DatasetRows) -> None:
        """The epochs of one training that are left."""
        if not (self._epoch or self._step):
            self._begin(self._training, rows)
        while self._epoch < self._tune.epochs:
            self._one_epoch(rows)
            self._end_of_epoch()
            self._epoch, self._step, self._sums = self._epoch + 1, 0, StepSums()
            if self._epoch < self._tune.epochs or self._is_last:
                self._save()

    def _one_epoch(self, rows: DatasetRows) -> None:
        """The steps of an epoch that are left."""
        seed, epoch, size = self._parameters.seed, self._epoch, self._tune.batch_size
        steps = -(-len(rows) // size)
        weights = class_weights(self._dataset.codes, rows, len(self._dataset.labels), self._parameters.class_weight)
        lots = epoch_batches.split_rows(
            epoch_batches.epoch_order(rows, self._dataset.ids, seed, epoch), size, self._step
        )
        waiting: deque[Callable[[], StepSums]] = deque()
        for some, pictures in epoch_batches.load_batches(lambda lot: self._pictures.changed(lot, epoch), lots):
            rate = self._tune.learning_rate * rate_at((epoch * steps + self._step + 0.5) / (steps * self._tune.epochs))
            waiting.append(self._trainer.step(TrainingBatch(pictures, self._dataset.codes[some], weights[some]), rate))
            self._step += 1
            self._progress.add(len(some))
            every = self._tune.checkpoint_steps if isinstance(self._tune, FineTuneParameters) else 0
            keep = every and self._step % every == 0 and self._step < steps
            self._add(waiting, 0 if keep else _UNDER_WAY)
            if keep:
                self._save()
        self._add(waiting, 0)

    def _add(self, waiting: deque[Callable[[], StepSums]], left: int) -> None:
        """Adds the sums of all steps but the last few."""
        while len(waiting) > left:
            self._sums = StepSums(*np.add(self._sums, waiting.popleft()()).tolist())
            self._check(self._sums.loss)

    def _check(self, loss: float) -> None:
        if not math.isfinite(loss):
            raise TrainingFailure(
                f"the training diverged in epoch {self._epoch + 1} of {self._tune.epochs} of {self._named}: its loss "
                f"is not a finite number. Lower {self._tune.group}.learning_rate, which is {self._tune.learning_rate:g}"
            )

    def _end_of_epoch(self) -> None:
        """Takes the measures of the epoch, prints them, and keeps the last logits of a fold."""
        loss, accuracy = self._sums.loss / self._sums.pictures, self._sums.right / self._sums.pictures
        said = f"loss {loss:.4f}, accuracy {accuracy:.1%}"
        if not self._is_last:
            division = self._divisions[self._training]
            logits = self._logits_of(division.left_out)
            codes = self._dataset.codes[division.left_out]
            others = validation.loss(logits, codes), float(np.mean(logits.argmax(axis=1) == codes))
            self._check(others[0])
            self._curves[self._training, self._epoch] = loss, accuracy, *others
            self._logits[division.places] = logits
            said += f"; left out: loss {others[0]:.4f}, accuracy {others[1]:.1%}"
        print(f"{self._named}, epoch {self._epoch + 1} of {self._tune.epochs}: {said}")

    @property
    def _is_last(self) -> bool:
        return self._training == len(self._divisions)

    @property
    def _named(self) -> str:
        return "the last training" if self._is_last else f"fold {self._training + 1} of {len(self._divisions)}"

    def _pictures_until(self, training: int, epoch: int) -> int:
        """The pictures that pass through the network before an epoch of a training: those left out do so, too."""
        return len(self._dataset.training) * (training * self._tune.epochs + epoch)

    def _save(self, between: bool = False) -> None:
        """Keeps the state; between two trainings that is without weights, since the next one has others."""
        if self._keeping is None:
            return
        arrays: dict[str, npt.NDArray[Any]] = {} if between else self._trainer.state()
        facts = {"training": self._training, "epoch": self._epoch, "step": self._step, "sums": self._sums}
        self._keeping.save(TrainingState(arrays | {"logits": self._logits, "curves": self._curves}, facts))

    def _resume(self) -> None:
        state = None if self._keeping is None else self._keeping.load()
        if state is None:
            return
        facts, arrays = state.facts, state.arrays
        self._training, self._epoch, self._step = facts["training"], facts["epoch"], facts["step"]
        self._sums = StepSums(*facts["sums"])
        self._logits, self._curves = arrays["logits"], arrays["curves"]
        if self._epoch or self._step:
            self._trainer.restore(arrays)
        self._progress.add(self._pictures_until(self._training, self._epoch) + self._step * self._tune.batch_size)
        print(f"goes on from a checkpoint: {self._named}, epoch {self._epoch + 1}, step {self._step + 1}")


def scaling_notes(dataset: Dataset) -> list[str]:
    """What people should know about a training on the thumbnails of these pictures, in sentences."""
    size = dataset.origin.image_size
    if size <= LARGEST:
        return []
    return [
        f"The network takes pictures of {size} px, but was trained on scaled-up thumbnails of {LARGEST} px at most; a "
        f"backbone of {LARGEST} px or less loses nothing."
    ]


def rate_at(done: float) -> float:
    """The share of the learning rate after a share of the steps: it rises evenly, then falls as half a cosine."""
    if done < WARM_UP:
        return done / WARM_UP
    return (1 + math.cos(math.pi * (done - WARM_UP) / (1 - WARM_UP))) / 2
