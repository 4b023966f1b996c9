"""The measurement of trainings: every contender on the same folds of a small set."""

from __future__ import annotations

import numpy as np
import pytest

from stages.classify.training import splits
from stages.classify.training.dataset import Dataset
from studies import classify
from studies.classify import as_dataset

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    """Vectors around two centres, far from each other."""
    lot = np.random.default_rng(0)
    labels = ["cat", "dog"] * 40
    centres = {"cat": 4.0, "dog": -4.0}
    vectors = np.stack([lot.normal(centres[label], size=6) for label in labels]).astype(np.float32)
    return as_dataset(vectors, labels)


def test_vectors_become_a_dataset(dataset: Dataset) -> None:
    assert list(dataset.ids) == sorted({*dataset.ids})
    assert dataset.held_out.tolist() == [splits.held_out(id, 0.2) for id in dataset.ids]
    right = dataset.vectors.mean(axis=1) > 0
    assert [dataset.labels[code] == "cat" for code in dataset.codes] == right.tolist()


def test_all_contenders_train_on_the_same_pictures(dataset: Dataset) -> None:
    lines = list(  # few epochs, since those of plain Keras take long
        classify.table({"made": (dataset, 0.1)}, rounds=1, epochs=5)
    )
    assert len(lines) == 2 + 4
    counts = f"{len(dataset.training)} + {len(dataset.unseen)} pictures, 2 labels"
    for line, name in zip(lines[2:], classify.contenders(0.1, 5), strict=True):
        cells = [each.strip() for each in line.strip("|").split("|")]
        assert cells[:2] == [f"made: {counts}", name]
        assert [float(each.split("%")[0]) for each in cells[2:4]] == [100, 100]
        assert float(cells[4]) > 0
