"""Heads on vectors, linear or with hidden layers: trained on all training pictures, and fold by fold to validate them.

Decides on rows, batches and rates; the arithmetic is that of `epochs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from stages.classify.training.dataset import Dataset, DatasetRows, FeatureVectors, LabelCodes
from stages.classify.training.epochs import CHUNK, compiled
from stages.classify.training.run_records import CURVES, TrainingFailure
from stages.classify.training.training_parameters import TrainingParameters
from stages.classify.training.validation import TrainingResult
from stages.datum.progress import Progress

_ROWS_AT_ONCE = 20_000
"""Rows that one call trains on, in as many epochs as that takes: each call costs a millisecond of Python."""

_SMALLEST = 0.05
"""Share of the mean deviation that each number's deviation has at least: one that hardly ever changes would otherwise
become huge in a picture in which it does."""


class _Scale(NamedTuple):
    """The standardisation of vectors: less the mean, over the deviation; float32 (d,) each."""

    mean: npt.NDArray[np.float32]
    deviation: npt.NDArray[np.float32]

    @classmethod
    def of(cls, vectors: FeatureVectors) -> _Scale:
        """Of the vectors of training pictures, float32 (n, d)."""
        mean = vectors.mean(axis=0, dtype=np.float64)
        deviation = vectors.std(axis=0, dtype=np.float64)
        least = _SMALLEST * deviation.mean() or 1.0
        return cls(mean.astype(np.float32), np.maximum(deviation, least).astype(np.float32))


def train(dataset: Dataset, parameters: TrainingParameters) -> TrainingResult:
    """Trains a head for each fold and one on all training pictures. Equal inputs give equal bits.

    Raises Failure if the loss becomes NaN or infinite, or if no fold can be left out.
    """
    trainer = _Trainer(dataset, parameters)
    training = dataset.training
    logits = np.empty((len(training), len(dataset.labels)), np.float32)
    curves = []
    for each in dataset.divisions(parameters.folds):
        curves.append(trainer.fit(each.rest, each.left_out, each.fold))
        logits[each.places] = trainer.logits(each.left_out)
    trainer.fit(training, training[:0], parameters.folds)
    return TrainingResult(
        network=trainer.network(),
        logits=logits,
        held_out=trainer.logits(dataset.unseen),
        curves={name: np.mean([each[name] for each in curves], axis=0).tolist() for name in curves[0]},
        weights=trainer.weights,
    )


def fitting(dataset: Dataset, parameters: TrainingParameters) -> Callable[[DatasetRows, int], keras.Model]:
    """A function that trains a head on some rows alone: from vectors (n, d) to logits (n, L). Its number is that of the
    training, which seeds its order. It raises Failure as `train` does, and each call changes the last one's head."""
    trainer = _Trainer(dataset, parameters)

    def fit(rows: DatasetRows, number: int) -> keras.Model:
        trainer.fit(rows, rows[:0], number)
        return trainer.network()

    return fit


class _Trainer:
    """One head, which is trained again from its first weights for each fold."""

    def __init__(self, dataset: Dataset, parameters: TrainingParameters) -> None:
        self._parameters = parameters
        self._dataset = dataset
        self._layers = layers(parameters, len(dataset.labels))
        self._head = keras.Sequential([keras.Input((dataset.vectors.shape[1],)), *self._layers], name="head")
        self._first = self._head.get_weights()
        self._optimizer = keras.optimizers.AdamW(parameters.learning_rate, parameters.weight_decay)
        self._optimizer.exclude_from_weight_decay(var_names=["bias"])
        self._optimizer.build(self._head.trainable_variables)
        self._fresh = [each.numpy() for each in self._optimizer.variables]
        self._seeds = [(each, each.numpy()) for each in self._head.non_trainable_variables]
        self._vectors = tf.constant(dataset.vectors)
        self._codes = tf.constant(dataset.codes)
        self._scale = _Scale.of(dataset.vectors[:1])
        self._epochs, self._forward = compiled(self._head, self._optimizer, parameters.label_smoothing)
        self._progress = Progress("epochs", parameters.epochs * (parameters.folds + 1))
        self.weights = int(sum(np.prod(each.shape) for each in self._head.trainable_variables))

    def fit(self, rows: DatasetRows, validation: DatasetRows, fold: int) -> Mapping[str, Sequence[float]]:
        """Trains the head from the beginning on some rows; returns its curves, by epoch."""
        self._reset()
        self._scale = _Scale.of(self._dataset.vectors[rows])
        chosen = self._parameters
        weights = class_weights(self._dataset.codes, rows, len(self._dataset.labels), chosen.class_weight)
        given = self._vectors, self._codes, tf.constant(weights), *self._scale, validation.astype(np.int32)
        steps = -(-len(rows) // chosen.batch_size)
        rates = chosen.learning_rate * _cosine(np.arange(steps * chosen.epochs) / (steps * chosen.epochs))
        at_once = max(1, _ROWS_AT_ONCE // len(rows))
        sums = []
        for begin in range(0, chosen.epochs, at_once):
            epochs = range(begin, min(begin + at_once, chosen.epochs))
            lots = (np.random.default_rng([chosen.seed, fold, epoch]) for epoch in epochs)
            batches, valid = zip(*(_batches(rows, steps, lot) for lot in lots), strict=True)
            of_epochs = rates[begin * steps :][: len(epochs) * steps].reshape(-1, steps).astype(np.float32)
            sums.append(self._epochs(*given, np.stack(batches), np.stack(valid), of_epochs).numpy())
            self._progress.add(len(epochs))
            self._check(sums[-1], begin)
        means = np.concatenate(sums).astype(np.float64)
        means[:, :2] /= len(rows)
        means[:, 2:] /= max(len(validation), 1)
        return {name: means[:, place].tolist() for place, name in enumerate(CURVES[: 4 if len(validation) else 2])}

    def logits(self, rows: DatasetRows) -> npt.NDArray[np.float32]:
        """The logits of some rows, float32 (n, L), by the head that was trained last."""
        given = np.empty((len(rows), len(self._dataset.labels)), np.float32)
        for begin in range(0, len(rows), CHUNK):
            some = tf.constant(rows[begin : begin + CHUNK].astype(np.int32))
            given[begin : begin + CHUNK] = self._forward(self._vectors, *self._scale, some).numpy()
        return given

    def network(self) -> keras.Model:
        """The head that was trained last, with the standardisation of its vectors as its first layer."""
        taken = keras.Input(self._scale.mean.shape, name="vectors")
        # Its numbers are part of the configuration, as float32: equal ones are written in the same way.
        standardise = keras.layers.Normalization(
            mean=self._scale.mean.tolist(), variance=np.square(self._scale.deviation).tolist(), name="standardise"
        )
        x = standardise(taken)
        for layer in self._layers:
            x = layer(x)
        return keras.Model(taken, x, name="classifier")

    def _reset(self) -> None:
        self._head.set_weights(self._first)
        for variable, value in (*zip(self._optimizer.variables, self._fresh, strict=True), *self._seeds):
            variable.assign(value)

    def _check(self, sums: npt.NDArray[np.float32], begin: int) -> None:
        finite = np.isfinite(sums).all(axis=1)
        if not finite.all():
            raise TrainingFailure(
                f"the training diverged in epoch {begin + int(finite.argmin()) + 1} of {self._parameters.epochs}: its "
                f"loss is not a finite number. Lower learning_rate, which is {self._parameters.learning_rate:g}"
            )


def layers(parameters: TrainingParameters, labels: int) -> list[keras.layers.Layer]:
    """The layers of a head, from standardised vectors to logits, with names and seeds."""
    made: list[keras.layers.Layer] = []
    for number, width in enumerate(parameters.hidden if parameters.head == "mlp" else (), 1):
        first = keras.initializers.GlorotUniform(seed=parameters.seed + number)
        made.append(keras.layers.Dense(width, activation="relu", kernel_initializer=first, name=f"hidden_{number}"))
        if parameters.dropout:
            seed = parameters.seed + number
            made.append(keras.layers.Dropout(parameters.dropout, seed=seed, name=f"dropout_{number}"))
    made.append(keras.layers.Dense(labels, kernel_initializer="zeros", name="logits"))
    return made


def class_weights(codes: LabelCodes, rows: DatasetRows, labels: int, kind: str) -> npt.NDArray[np.float32]:
    """The weight of each of n pictures, float32 (n,): 1, or such that all labels among the rows have the same, with a
    mean of 1 over the rows. codes: int32 (n,). kind: one of parameters.CLASS_WEIGHTS."""
    if kind == "none":
        return np.ones(len(codes), np.float32)
    numbers = np.bincount(codes[rows], minlength=labels)
    of_label = len(rows) / (np.count_nonzero(numbers) * np.maximum(numbers, 1))
    weights: npt.NDArray[np.float32] = of_label.astype(np.float32)[codes]
    return weights


def _batches(
    rows: DatasetRows, steps: int, lot: np.random.Generator
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Shuffled rows in batches that differ by one at most, int32 (steps, batch), and 1 for each row, 0 for padding."""
    width = -(-len(rows) // steps)
    batches, valid = np.zeros((steps, width), np.int32), np.zeros((steps, width), np.float32)
    for step, some in enumerate(np.array_split(lot.permutation(rows), steps)):
        batches[step, : len(some)], valid[step, : len(some)] = some, 1
    return batches, valid


def _cosine(done: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The share of the learning rate at shares of the training: from 1 to 0, half a cosine."""
    share: npt.NDArray[np.float64] = (1 + np.cos(np.pi * done)) / 2
    return share
