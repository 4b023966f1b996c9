"""Labelled pictures as arrays: sides, labels that can be learnt, and what there is to say of the others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from stages.classify.training import dataset, splits
from stages.classify.training.dataset import Dataset
from stages.classify.training.run_records import PictureCounts, TrainingFailure
from stages.datum.contract import StageError
from stages.record.origin import Origin
from tests.stages.classify.labelled_sets import DIMENSION, MODEL, vector, write
from tests.stages.picture_indexes import id_of


def many(labels: Sequence[str], number: int) -> dict[str, str]:
    return {f"{label}/{each}.jpg": label for label in labels for each in range(number)}


def test_pictures_come_in_the_order_of_ids_with_all_that_is_theirs(tmp_path: Path) -> None:
    labels = many(("cat", "ape", "dog"), 40)
    found = dataset.read(write(tmp_path / "labelled", labels))
    assert len(found) == 120
    assert list(found.ids) == sorted(found.ids)
    assert found.labels == ["ape", "cat", "dog"]
    assert [found.labels[code] for code in found.codes] == [labels[source] for source in found.sources]
    np.testing.assert_array_equal(found.vectors, np.array([vector(name, labels[name]) for name in found.sources]))
    assert list(found.thumbnails) == [b"jpeg of " + source.encode() for source in found.sources]
    assert found.origin == Origin(MODEL, "pad", 32, DIMENSION, "small at 32 px")
    assert (found.vectors.dtype, found.codes.dtype) == (np.dtype(np.float32), np.dtype(np.int32))


def test_sides_are_those_of_the_ids(tmp_path: Path) -> None:
    found = dataset.read(write(tmp_path / "labelled", many(("cat", "dog"), 40), share=0.3))
    assert found.held_out.tolist() == [splits.held_out(id, 0.3) for id in found.ids]
    assert sorted([*found.training.tolist(), *found.unseen.tolist()]) == list(range(80))
    assert found.counts == PictureCounts(len(found.training), len(found.unseen), 0)
    assert found.folds(4).tolist() == [splits.fold(found.ids[row], 4) for row in found.training]
    found.check()


def test_labels_with_too_few_training_pictures_are_left_out_and_counted(tmp_path: Path) -> None:
    labels = many(("cat", "dog"), 20) | {"yak.jpg": "yak"}
    found = dataset.read(write(tmp_path / "labelled", labels, share=0))
    assert found.labels == ["cat", "dog"]
    assert (found.unlearnable, found.counts) == ({"yak": 1}, PictureCounts(40, 0, 1))
    assert len(found.vectors) == len(found.codes) == 40


def test_a_label_that_is_held_out_altogether_cannot_be_learnt(tmp_path: Path) -> None:
    names = [f"yak/{each}.jpg" for each in range(60)]
    held = [name for name in names if splits.held_out(id_of(name), 0.2)]
    assert len(held) > 2
    labels = many(("cat", "dog"), 20) | dict.fromkeys(held, "yak")
    found = dataset.read(write(tmp_path / "labelled", labels))
    assert (found.unlearnable, found.left_out) == ({"yak": 0}, len(held))


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ({}, "no picture has a label: label some with"),
        ({"yak.jpg": "yak"}, r"no label has 2 training pictures \(yak with fewer\): label more"),
        (many(("cat",), 9), "only one label, cat, has 2 training pictures; a classifier needs two"),
        (
            many(("cat",), 9) | {f"{each}.jpg": each for each in "abcdefg"},
            r"only one label, cat, has 2 training pictures \(a, b, c, d, e, 2 more with fewer\); a classifier",
        ),
    ],
)
def test_too_few_labels_are_a_failure_with_its_reason(labels: dict[str, str], reason: str, tmp_path: Path) -> None:
    found = dataset.read(write(tmp_path / "labelled", labels, share=0))
    with pytest.raises(TrainingFailure, match=reason):
        found.check()
    assert found.vectors.shape == (len(found), DIMENSION)


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="the repo labelled holds no pictures"):
        dataset.read(tmp_path)
    write(tmp_path / "one", many(("cat", "dog"), 20))
    write(tmp_path / "two", many(("cat", "dog"), 20), share=0.5)
    (tmp_path / "one" / "3.parquet").write_bytes((tmp_path / "two" / "3.parquet").read_bytes())
    with pytest.raises(StageError, match="two models, two kinds of pictures, or two values of HELD_OUT"):
        dataset.read(tmp_path / "one")
    np.save(tmp_path / "two" / "3.npy", np.zeros((1, DIMENSION), np.float32))
    with pytest.raises(StageError, match="segment 3 does not have one vector for each labelled picture"):
        dataset.read(tmp_path / "two")


def test_an_empty_dataset_can_be_divided(tmp_path: Path) -> None:
    found = dataset.read(write(tmp_path / "labelled", {}))
    assert isinstance(found, Dataset)
    assert (len(found), found.labels, found.counts) == (0, [], PictureCounts())
