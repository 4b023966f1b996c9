"""The judgement of a training by pictures that it had not seen: temperature, probabilities, scores and calibration.

NumPy alone, in double precision; knows no network and no files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from stages.classify.training.dataset import Dataset, DatasetRows, LabelCodes
from stages.classify.training.prediction_measures import SplitPredictions, calibration_error
from stages.classify.training.run_records import DIGITS, AccuracyScore
from stages.files.tables.prediction_table import CROSS_VALIDATION, HELD_OUT, PredictionTable

if TYPE_CHECKING:
    import keras

COLDEST, HOTTEST = 0.05, 20.0
"""Ends of the range of temperatures: with chance alone, the best one is beyond all bounds."""

_STEPS = 60  # of the golden section: the range shrinks to 1e-12 of itself

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TrainingResult:
    """A trained network and its predictions of pictures that its training had not seen: the result of `heads.train`,
    `convolutional.train` or `fine_tuning.train` on a Dataset with n training and m held-out pictures and L labels.

    network: trained on all training pictures, from inputs (batch, …) to logits (batch, L), not probabilities: the
    temperature and the softmax are put on top later. All its layers have names. logits: float32 (n, L), of each
    training picture in the order of Dataset.training, by the network of the fold that left it out. held_out: float32
    (m, L), logits of `network`, in the order of Dataset.unseen. curves: of runs.CURVES, a number for each epoch, the
    mean over the folds. weights: numbers that were trained in `network`. notes: of the run. validated: the training
    pictures that `logits` are of, as rows of the Dataset, where they are not all.
    """

    network: keras.Model
    logits: npt.NDArray[np.float32]
    held_out: npt.NDArray[np.float32]
    curves: Mapping[str, Sequence[float]]
    weights: int
    notes: Sequence[str] = ()
    validated: DatasetRows | None = None


@dataclass(frozen=True)
class ValidationResult:
    """temperature: divides the logits, rounded as in the record. ece: expected calibration error of the out-of-fold
    probabilities."""

    temperature: float
    cross_validation: AccuracyScore
    held_out: AccuracyScore | None
    ece: float
    predictions: PredictionTable


def judge(dataset: Dataset, trained: TrainingResult) -> ValidationResult:
    """Judges a training on a dataset with at least one training picture."""
    unseen, validated = dataset.unseen, dataset.training if trained.validated is None else trained.validated
    own = dataset.codes[validated]
    temperature = round(fitted(trained.logits, own), DIGITS)
    logits = np.zeros((len(dataset), len(dataset.labels)), np.float32)
    logits[validated], logits[unseen] = trained.logits, trained.held_out
    probabilities = softmax(logits, temperature)
    best, every = logits.argmax(axis=1), np.arange(len(dataset))
    of_best, of_own = probabilities[every, best], probabilities[every, dataset.codes]
    judged = SplitPredictions(own.astype(np.int64), best[validated], of_best[validated], of_own[validated])
    right = best == dataset.codes
    rows = np.sort(np.concatenate([validated, unseen]))
    cross_validation = AccuracyScore.counted(int(right[validated].sum()), len(validated))
    assert cross_validation is not None
    return ValidationResult(
        temperature=temperature,
        cross_validation=cross_validation,
        held_out=AccuracyScore.counted(int(right[unseen].sum()), len(unseen)),
        ece=calibration_error(judged),
        predictions=PredictionTable(
            ids=[dataset.ids[row] for row in rows],
            sources=[dataset.sources[row] for row in rows],
            labels=[dataset.labels[code] for code in dataset.codes[rows].tolist()],
            splits=[HELD_OUT if held else CROSS_VALIDATION for held in dataset.held_out[rows].tolist()],
            predicted=[dataset.labels[code] for code in best[rows].tolist()],
            probabilities=of_best[rows].astype(np.float32),
            true_probabilities=of_own[rows].astype(np.float32),
        ),
    )


def softmax(logits: npt.NDArray[np.float32], temperature: float) -> _Floats:
    """Probabilities, float64 (n, L), of logits (n, L) over a temperature."""
    divided = logits.astype(np.float64) / temperature
    powers = np.exp(divided - divided.max(axis=1, keepdims=True))
    found: _Floats = powers / powers.sum(axis=1, keepdims=True)
    return found


def loss(logits: npt.NDArray[np.float32], codes: LabelCodes, temperature: float = 1.0, share: float = 0.0) -> float:
    """The mean cross-entropy (nats) with targets that give the own label `1 - share`, and `share` to all alike."""
    divided = logits.astype(np.float64) / temperature
    highest = divided.max(axis=1)
    of_all = np.log(np.exp(divided - highest[:, None]).sum(axis=1)) + highest
    own = divided[np.arange(len(codes)), codes]
    return float(np.mean(of_all - (1 - share) * own - share * divided.mean(axis=1)))


def doubt(pictures: int) -> float:
    """The share of a target that is not the own label's: no number of pictures without an error proves that there is
    none, and without doubt the best temperature of such pictures is 0, with probabilities of 1 (Platt, 1999)."""
    return 1 / (pictures + 2)


def fitted(logits: npt.NDArray[np.float32], codes: LabelCodes) -> float:
    """The temperature, from COLDEST to HOTTEST, with the least loss at doubt(n), which has one minimum in its
    inverse."""
    share = doubt(len(codes))
    return float(
        np.exp(_least(lambda power: loss(logits, codes, float(np.exp(power)), share), np.log(COLDEST), np.log(HOTTEST)))
    )


def _least(of: Callable[[float], float], low: float, high: float) -> float:
    """The place of the minimum of a function with one minimum, by golden section."""
    ratio = (5**0.5 - 1) / 2
    one, other = high - ratio * (high - low), low + ratio * (high - low)
    at_one, at_other = of(one), of(other)
    for _ in range(_STEPS):
        if at_one < at_other:
            high, other, at_other = other, one, at_one
            one = high - ratio * (high - low)
            at_one = of(one)
        else:
            low, one, at_one = one, other, at_other
            other = low + ratio * (high - low)
            at_other = of(other)
    return (low + high) / 2
