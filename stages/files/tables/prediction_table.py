"""Tables of predictions: the labels that a run gave to pictures which its training had not seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stages.files.tables.columns import Column
from stages.files.tables.table import Table

CROSS_VALIDATION, HELD_OUT = "cross-validation", "held-out"
"""The splits: a training picture, predicted by the fold that left it out, and a picture that no training has seen."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PredictionTable(Table):
    """n predicted pictures, sorted by id."""

    ids: Annotated[Sequence[str], Column("id", pa.string(), ordered=True)]  # n × 64 hex digits
    sources: Annotated[Sequence[str], Column("source", pa.string(), escaped=True)]  # the path of the first of each
    labels: Annotated[Sequence[str], Column("label", pa.string())]  # their own
    splits: Annotated[Sequence[str], Column("split", pa.string())]  # CROSS_VALIDATION or HELD_OUT
    predicted: Annotated[Sequence[str], Column("predicted", pa.string())]  # the label of the highest probability
    probabilities: Annotated[npt.NDArray[np.float32], Column("probability", pa.float32())]  # of that label
    true_probabilities: Annotated[npt.NDArray[np.float32], Column("true_probability", pa.float32())]  # of their own
