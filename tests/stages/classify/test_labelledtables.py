"""Tables of labelled pictures and of predictions: values back, equal bytes, other files refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stages.datum.contract import StageError
from stages.files.tables.label_table import LabelTable
from stages.files.tables.prediction_table import CROSS_VALIDATION, HELD_OUT, PredictionTable
from stages.record.origin import Origin

IDS = ["0a" * 32, "0b" * 32]
LABELLED = LabelTable(
    ids=IDS,
    sources=["cats/\udcff.jpg", "dogs/é.jpg"],
    labels=["cat", "hérisson"],
    thumbnails=[b"\xff\xd8one", b"\xff\xd8two"],
    origin=Origin("cd" * 32, "pad", 224, 1280, "efficientnet-lite0 at 224 px", ("cpu",)),
    held_out=0.2,
)
PREDICTIONS = PredictionTable(
    ids=IDS,
    sources=LABELLED.sources,
    labels=LABELLED.labels,
    splits=[CROSS_VALIDATION, HELD_OUT],
    predicted=["cat", "cat"],
    probabilities=np.array([0.75, 0.5], np.float32),
    true_probabilities=np.array([0.75, 0.25], np.float32),
)


def test_labelled_pictures_are_read_back(tmp_path: Path) -> None:
    LABELLED.write(tmp_path / "a.parquet")
    LABELLED.write(tmp_path / "b.parquet")
    assert LabelTable.read(tmp_path / "a.parquet") == LABELLED
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_a_table_may_be_empty(tmp_path: Path) -> None:
    empty = LabelTable(
        ids=[],
        sources=[],
        labels=[],
        thumbnails=[],
        origin=Origin("cd" * 32, "pad", 224, 1280),
    )
    empty.write(tmp_path / "a.parquet")
    assert LabelTable.read(tmp_path / "a.parquet") == empty


def test_predictions_are_read_back(tmp_path: Path) -> None:
    PREDICTIONS.write(tmp_path / "a.parquet")
    PREDICTIONS.write(tmp_path / "b.parquet")
    found = PredictionTable.read(tmp_path / "a.parquet")
    assert (found.ids, found.sources, found.labels) == (IDS, PREDICTIONS.sources, PREDICTIONS.labels)
    assert (found.splits, found.predicted) == (PREDICTIONS.splits, PREDICTIONS.predicted)
    np.testing.assert_array_equal(found.probabilities, PREDICTIONS.probabilities)
    np.testing.assert_array_equal(found.true_probabilities, PREDICTIONS.true_probabilities)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_each_refuses_the_others_table(tmp_path: Path) -> None:
    LABELLED.write(tmp_path / "a.parquet")
    PREDICTIONS.write(tmp_path / "b.parquet")
    with pytest.raises(
        StageError, match="a.parquet is not a table that this version of lookalike wrote: it lacks split"
    ):
        PredictionTable.read(tmp_path / "a.parquet")
    with pytest.raises(StageError, match="b.parquet is not a table that this version .* lacks thumbnail, model"):
        LabelTable.read(tmp_path / "b.parquet")


def test_rows_are_distinct_and_sorted() -> None:
    with pytest.raises(ValueError, match="distinct and sorted"):
        LabelTable(
            ids=IDS[::-1],
            sources=["a", "b"],
            labels=["a", "b"],
            thumbnails=[b"", b""],
            origin=Origin("m", "pad", 1, 1),
        )
    with pytest.raises(ValueError, match="differ in length"):
        LabelTable(
            ids=IDS,
            sources=["a"],
            labels=["a", "b"],
            thumbnails=[b"", b""],
            origin=Origin("m", "pad", 1, 1),
        )
