"""Tables of predictions: the labels that a run gave to pictures which its training had not seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stages.files.tables.parquet import read_table, reader, stored_text, true_text, write_table

CROSS_VALIDATION, HELD_OUT = "cross-validation", "held-out"
"""The splits: a training picture, predicted by the fold that left it out, and a picture that no training has seen."""

_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("label", pa.string()),
        ("split", pa.string()),
        ("predicted", pa.string()),
        ("probability", pa.float32()),
        ("true_probability", pa.float32()),
    ]
)


@dataclass(frozen=True)
class PredictionTable:
    """n predicted pictures, sorted by id.

    sources: the true path of the first source of each. labels: their own. splits: CROSS_VALIDATION or HELD_OUT.
    predicted: the label of the highest probability. probabilities: float32 (n,), of that label; true_probabilities:
    float32 (n,), of the own label.
    """

    ids: Sequence[str]
    sources: Sequence[str]
    labels: Sequence[str]
    splits: Sequence[str]
    predicted: Sequence[str]
    probabilities: npt.NDArray[np.float32]
    true_probabilities: npt.NDArray[np.float32]

    def __post_init__(self) -> None:
        columns = (self.sources, self.labels, self.splits, self.predicted, self.probabilities, self.true_probabilities)
        if {len(each) for each in columns} != {len(self.ids)}:
            raise ValueError("columns of a table of predictions differ in length")
        if any(a >= b for a, b in pairwise(self.ids)):
            raise ValueError("ids of a table of predictions must be distinct and sorted")

    def __len__(self) -> int:
        return len(self.ids)


def write_predictions(predictions: PredictionTable, path: Path) -> None:
    """Writes a table of predictions; equal values give equal bytes."""
    columns = {
        "id": predictions.ids,
        "source": [stored_text(each) for each in predictions.sources],
        "label": predictions.labels,
        "split": predictions.splits,
        "predicted": predictions.predicted,
        "probability": predictions.probabilities,
        "true_probability": predictions.true_probabilities,
    }
    write_table(columns, _SCHEMA, {}, path)


@reader
def read_predictions(file: Path | BinaryIO) -> PredictionTable:
    """Reads what write_predictions wrote, from a path or a seekable binary file. Raises StageError for any other
    file."""
    table, _ = read_table(file, _SCHEMA)
    return PredictionTable(
        ids=table["id"].to_pylist(),
        sources=[true_text(each) for each in table["source"].to_pylist()],
        labels=table["label"].to_pylist(),
        splits=table["split"].to_pylist(),
        predicted=table["predicted"].to_pylist(),
        probabilities=table["probability"].to_numpy(),
        true_probabilities=table["true_probability"].to_numpy(),
    )
