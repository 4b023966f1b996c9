"""A trained classifier in memory: vectors or pictures in, a probability of each label out. Knows no training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from stages.backbone.backbones import load_keras
from stages.backbone.forward_passes import EVEN
from stages.classify import classifier_description
from stages.classify.classifier_description import ClassifierDescription
from stages.classify.training.run_records import MODEL
from stages.datum.contract import StageError

BATCH = EVEN
"""Rows of every forward pass: libraries choose kernels, and so the order of sums, by the shape of a batch."""


class Classifier:
    """A callable, float32 (n, d) vectors or uint8 RGB (n, S, S, 3) pictures in, float32 (n, L) probabilities out: d and
    S are the backbone's, and `chosen` says which of the two.

    An answer depends on its row alone, bit for bit on one machine: the last batch is filled up.
    """

    def __init__(self, model: keras.Model, described: ClassifierDescription) -> None:
        """Raises StageError if the model and the description do not belong together."""
        _check(model, described)
        model.compile(jit_compile=False)  # XLA's fusions would change the result
        self._model = model
        self.chosen = described

    def __call__(self, values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Raises StageError for values of another shape or kind, and if a probability is not finite."""
        shape, kind = _row(self.chosen)
        if values.dtype != kind or values.shape[1:] != shape:
            raise StageError(
                f"this classifier takes {self.chosen.takes}, {kind} {shape} each, not {values.dtype} {values.shape[1:]}"
            )
        given = np.empty((len(values), len(self.chosen.labels)), np.float32)
        for begin in range(0, len(values), BATCH):
            some = values[begin : begin + BATCH]
            filled = np.zeros((BATCH, *shape), kind)
            filled[: len(some)] = some
            given[begin : begin + len(some)] = np.asarray(self._model.predict_on_batch(filled))[: len(some)]
        if not np.isfinite(given).all():
            raise StageError(
                f"the classifier of the run {self.chosen.run} gives probabilities that are not finite for some picture"
            )
        return given


def open(directory: Path) -> Classifier:
    """The classifier in a directory with model.keras and labels.json, seekable files.

    Raises StageError if one is missing, is not such a file, or does not belong to the other.
    """
    files = directory / classifier_description.FILE, directory / MODEL
    for file in files:
        if not file.is_file():
            raise StageError(
                f"there is no {file.name}: a classifier is two files, {MODEL} and {classifier_description.FILE}"
            )
    return Classifier(load_keras(files[1]), classifier_description.parse(files[0].read_bytes()))


def _row(described: ClassifierDescription) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and the type of one row of the inputs."""
    if described.takes == "vectors":
        return (described.origin.dimension,), np.dtype(np.float32)
    side = described.origin.image_size
    return (side, side, 3), np.dtype(np.uint8)


def _check(model: keras.Model, described: ClassifierDescription) -> None:
    taken, given = ([tuple(each.shape[1:]) for each in several] for several in (model.inputs, model.outputs))
    wanted = [_row(described)[0]], [(len(described.labels),)]
    if (taken, given) != wanted:
        raise StageError(
            f"{MODEL} and {classifier_description.FILE} do not belong together: "
            f"the model maps {_shapes(taken)} to {_shapes(given)}, "
            f"the description says {_shapes(wanted[0])} to {_shapes(wanted[1])}. Take both from one commit"
        )


def _shapes(shapes: Sequence[tuple[int | None, ...]]) -> str:
    return " and ".join(map(str, shapes))
