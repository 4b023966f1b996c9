"""The predictions of a run measured: accuracy, labels, confusions, calibration, mistakes, as JSON values.

NumPy alone; knows no files and no markup. Numbers are rounded, so that the order of sums does not show in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.classify.training.run_records import AccuracyScore
from stages.datum.contract import StageError
from stages.files.tables.prediction_table import CROSS_VALIDATION, HELD_OUT, PredictionTable
from stages.quality import wilson_interval
from stages.quality.measures import rounded

BINS = 15
"""Bins of equal width of the calibration error."""

MOST_MISTAKES = 100
"""Most wrong predictions that are listed, the most confident first."""

MOST_SHOWN = 24
"""Most labels of the confusion matrix."""

_LEAST = 1e-9  # smaller probabilities count as this one in the logarithmic loss

_Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SplitPredictions:
    """n predictions of one kind. own, predicted: int64 (n,), places in the labels. probabilities: float64 (n,), of the
    predicted label; of_own: float64 (n,), of the own one."""

    own: _Codes
    predicted: _Codes
    probabilities: npt.NDArray[np.float64]
    of_own: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.own)

    @property
    def right(self) -> npt.NDArray[np.bool_]:
        """Whether each prediction is right, bool (n,)."""
        return np.equal(self.own, self.predicted)


def measure_run(predictions: PredictionTable, labels: Sequence[str]) -> dict[str, Any]:
    """The measures of a run with these labels: cross_validation, held_out (None without such pictures), per_label,
    confusions and matrix of the cross-validation, mistakes."""
    validated, unseen = (side(predictions, labels, split) for split in (CROSS_VALIDATION, HELD_OUT))
    counts = confusion_counts(validated)
    return {
        "cross_validation": totals(validated, len(labels)),
        "held_out": totals(unseen, len(labels)),
        "per_label": per_label(validated, unseen, labels),
        "confusions": [
            {"label": labels[own], "taken_for": labels[other], "pictures": count} for own, other, count in counts
        ],
        "matrix": matrix(validated, labels),
        "mistakes": mistakes(predictions),
    }


def side(predictions: PredictionTable, labels: Sequence[str], split: str) -> SplitPredictions:
    """The predictions of a split. labels: of the run, sorted. Raises StageError if another one occurs."""
    code_of = {label: code for code, label in enumerate(labels)}
    foreign = {*predictions.labels, *predictions.predicted} - code_of.keys()
    if foreign:
        raise StageError(
            f"the predictions have the label {min(foreign)!r}, which the run does not have: train it again with "
            "`lookalike deploy --reprocess train`"
        )
    rows = np.array([row for row, each in enumerate(predictions.splits) if each == split], np.int64)
    own, predicted = (
        np.array([code_of[each[row]] for row in rows.tolist()], np.int64)
        for each in (predictions.labels, predictions.predicted)
    )
    return SplitPredictions(
        own,
        predicted,
        predictions.probabilities[rows].astype(np.float64),
        predictions.true_probabilities[rows].astype(np.float64),
    )


def totals(given: SplitPredictions, labels: int) -> dict[str, Any] | None:
    """The measures of all predictions together; None without any.

    right, of, accuracy with its interval; macro: means over the labels that have pictures; log_loss in nats; brier: of
    the predicted label, the mean square of its probability less 1 if it is right, or less 0; ece: expected calibration
    error; bins: those with predictions.
    """
    score = AccuracyScore.counted(int(given.right.sum()), len(given))
    if score is None:
        return None
    there, predicted, right = _counts(given, labels)
    present = there > 0
    precision = np.where(predicted > 0, right / np.maximum(predicted, 1), 0)
    means = {
        "precision": precision[present].mean(),
        "recall": (right[present] / there[present]).mean(),
        "f1": (2 * right[present] / (there + predicted)[present]).mean(),
    }
    return {
        **asdict(score),
        "macro": {name: rounded(value) for name, value in means.items()},
        "log_loss": rounded(-np.log(np.maximum(given.of_own, _LEAST)).mean()),
        "brier": rounded(np.square(given.probabilities - given.right).mean()),
        "ece": rounded(calibration_error(given)),
        "bins": [
            {name: value if isinstance(value, int) else rounded(value) for name, value in each.items()}
            for each in bins(given)
        ],
    }


def calibration_error(given: SplitPredictions) -> float:
    """The expected calibration error: the mean, over n > 0 predictions, of the difference between the accuracy and the
    mean probability of those in the same bin."""
    gaps = [each["pictures"] * abs(each["accuracy"] - each["probability"]) for each in bins(given)]
    return float(sum(gaps) / len(given))


def bins(given: SplitPredictions) -> list[dict[str, Any]]:
    """The predictions by their probability, in BINS bins of equal width, without empty ones: from, to, pictures, the
    mean probability, the accuracy with its interval; not rounded."""
    places = np.minimum((given.probabilities * BINS).astype(np.int64), BINS - 1)
    numbers = np.bincount(places, minlength=BINS)
    rights, sums = (np.bincount(places, each, BINS) for each in (given.right, given.probabilities))
    found = []
    for place in np.flatnonzero(numbers).tolist():
        of = int(numbers[place])
        accuracy, low, high = wilson_interval.wilson(int(rights[place]), of)
        found.append(
            {
                "from": place / BINS,
                "to": (place + 1) / BINS,
                "pictures": of,
                "probability": float(sums[place]) / of,
                "accuracy": accuracy,
                "low": low,
                "high": high,
            }
        )
    return found


def per_label(validated: SplitPredictions, unseen: SplitPredictions, labels: Sequence[str]) -> list[dict[str, Any]]:
    """The labels, those with the least F1 first: pictures, times predicted, precision (None if it never is predicted),
    recall with its interval and F1 in the cross-validation, and the recall of held-out pictures (None without any)."""
    there, predicted, right = _counts(validated, len(labels))
    held, _, held_right = _counts(unseen, len(labels))
    rows = []
    for code, label in enumerate(labels):
        of, times, hits = int(there[code]), int(predicted[code]), int(right[code])
        recall = AccuracyScore.counted(hits, of)
        kept_apart = AccuracyScore.counted(int(held_right[code]), int(held[code]))
        rows.append(
            {
                "label": label,
                "pictures": of,
                "right": hits,
                "predicted": times,
                "precision": rounded(hits / times) if times else None,
                "recall": None if recall is None else recall.accuracy,
                "low": None if recall is None else recall.low,
                "high": None if recall is None else recall.high,
                "f1": rounded(2 * hits / (of + times)) if of + times else None,
                "held_out": None if kept_apart is None else asdict(kept_apart),
            }
        )
    return sorted(rows, key=lambda row: (row["f1"] is None, row["f1"], row["recall"] or 0, row["label"]))


def confusion_counts(given: SplitPredictions) -> list[tuple[int, int, int]]:
    """All pairs of an own label and another one that was predicted, with their number, the most frequent first."""
    wrong = ~given.right
    pairs, numbers = np.unique(np.stack([given.own[wrong], given.predicted[wrong]]), axis=1, return_counts=True)
    found = zip(*pairs.tolist(), numbers.tolist(), strict=True)
    return sorted(found, key=lambda each: (-each[2], each[0], each[1]))


def matrix(given: SplitPredictions, labels: Sequence[str]) -> dict[str, Any]:
    """The pictures by their label (rows) and the predicted one (columns). Of many labels, those that are confused most;
    the last row and column are then all others."""
    kept = np.arange(len(labels))
    if len(labels) > MOST_SHOWN:
        wrong = ~given.right
        confused = sum(np.bincount(each[wrong], minlength=len(labels)) for each in (given.own, given.predicted))
        kept = np.sort(np.argsort(-confused, kind="stable")[:MOST_SHOWN])
    places = np.full(len(labels), len(kept), np.int64)
    places[kept] = np.arange(len(kept))
    side = len(kept) + 1
    counts = np.bincount(places[given.own] * side + places[given.predicted], minlength=side * side)
    rest = len(kept) < len(labels)
    end = side if rest else side - 1
    rows = counts.reshape(side, side)[:end, :end]
    return {"labels": [labels[code] for code in kept.tolist()], "others": rest, "rows": rows.tolist()}


def mistakes(predictions: PredictionTable) -> list[dict[str, Any]]:
    """The wrong predictions, the most confident first, MOST_MISTAKES at most."""
    rows = [
        row
        for row, (own, predicted) in enumerate(zip(predictions.labels, predictions.predicted, strict=True))
        if own != predicted
    ]
    probabilities = predictions.probabilities.tolist()
    rows.sort(key=lambda row: (-probabilities[row], predictions.ids[row]))
    return [
        {
            "id": predictions.ids[row],
            "source": predictions.sources[row],
            "label": predictions.labels[row],
            "predicted": predictions.predicted[row],
            "probability": rounded(probabilities[row]),
            "of_label": rounded(predictions.true_probabilities[row]),
            "split": predictions.splits[row],
        }
        for row in rows[:MOST_MISTAKES]
    ]


def _counts(given: SplitPredictions, labels: int) -> tuple[_Codes, _Codes, _Codes]:
    """By label: the pictures, the predictions, and the right ones."""
    several = given.own, given.predicted, given.own[given.right]
    there, predicted, right = (np.bincount(each, minlength=labels) for each in several)
    return there, predicted, right
