"""The labelled pictures of all segments as arrays: training and held-out ones, of labels that can be learnt.

Reads what the stage labelled wrote. Knows no network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.classify.training import splits
from stages.classify.training.run_records import PictureCounts, TrainingFailure, TrainingRun
from stages.classify.training.training_parameters import TrainingParameters
from stages.datum.contract import StageError
from stages.files.tables.label_table import LabelTable
from stages.files.vector_files import read_vectors
from stages.record.origin import Origin

FEWEST = 2
"""Training pictures of a label that can be learnt: with one, a fold has none to train on."""

FeatureVectors = npt.NDArray[np.float32]
LabelCodes = npt.NDArray[np.int32]
DatasetRows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FoldSplit:
    """Training pictures without one fold: the rows of the rest and of the fold, and the fold's places in
    Dataset.training; int64, ascending."""

    fold: int
    rest: DatasetRows
    left_out: DatasetRows
    places: DatasetRows


@dataclass(frozen=True)
class Dataset:
    """n pictures of labels that can be learnt, sorted by id.

    sources: the true path of the first source of each. codes: int32 (n,), places in `labels`, which are sorted.
    vectors: float32 (n, d). thumbnails: JPEG files, longest side 240 at most, without padding. held_out: bool (n,), and
    share, by which it was chosen. unlearnable: the training pictures of each label that has too few. left_out: the
    number of pictures of those labels, held out or not.
    """

    ids: Sequence[str]
    sources: Sequence[str]
    labels: Sequence[str]
    codes: LabelCodes
    vectors: FeatureVectors
    thumbnails: Sequence[bytes]
    held_out: npt.NDArray[np.bool_]
    share: float
    origin: Origin
    unlearnable: Mapping[str, int] = field(default_factory=dict)
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def training(self) -> DatasetRows:
        """The rows of the training pictures, int64, ascending."""
        return np.flatnonzero(~self.held_out)

    @property
    def unseen(self) -> DatasetRows:
        """The rows of the pictures that are held out, int64, ascending."""
        return np.flatnonzero(self.held_out)

    @property
    def counts(self) -> PictureCounts:
        """The numbers of pictures."""
        return PictureCounts(len(self.training), len(self.unseen), self.left_out)

    def run(self, parameters: TrainingParameters) -> TrainingRun:
        """The record of a training on these pictures, without its result."""
        return TrainingRun(
            name=parameters.name,
            parameters=parameters,
            labels=tuple(self.labels),
            takes=parameters.takes,
            pictures=self.counts,
            unlearnable=self.unlearnable,
            origin=self.origin,
            held_out_share=self.share,
        )

    def folds(self, number: int) -> LabelCodes:
        """The fold of each training picture, int32, in the order of `training`."""
        return np.fromiter((splits.fold(self.ids[row], number) for row in self.training.tolist()), np.int32)

    def divisions(self, number: int) -> list[FoldSplit]:
        """The training pictures without each of `number` folds, but for those that have none or all of them, as happens
        with few pictures. Raises Failure if no fold is left."""
        training, folds = self.training, self.folds(number)
        found = [
            FoldSplit(fold, training[folds != fold], training[folds == fold], np.flatnonzero(folds == fold))
            for fold in np.unique(folds).tolist()
        ]
        if len(found) < 2:
            raise TrainingFailure(
                f"all {len(training)} training pictures are in one fold, so nothing can be validated: label more "
                "pictures, or change folds"
            )
        return found

    def check(self) -> None:
        """Raises Failure if there is nothing to learn: fewer than two labels that can be."""
        if len(self.labels) > 1:
            return
        few = f" ({_named(self.unlearnable)} with fewer)" if self.unlearnable else ""
        if not self.labels:
            raise TrainingFailure(
                f"no label has {FEWEST} training pictures{few}: label more with `lookalike classify add`"
                if self.unlearnable
                else "no picture has a label: label some with `lookalike classify add`; the sources in a file of "
                "labels must be those of the library"
            )
        raise TrainingFailure(
            f"only one label, {self.labels[0]}, has {FEWEST} training pictures{few}; a classifier needs two: label "
            "pictures of another kind"
        )


def read(directory: Path) -> Dataset:
    """The labelled pictures in a directory of <segment>.npy and <segment>.parquet.

    Raises StageError if there are none of these files, or if they do not belong together.
    """
    tables, vectors = zip(*read_segments(directory), strict=True)
    first = tables[0]
    if not all(each.origin.comparable(first.origin) and each.held_out == first.held_out for each in tables):
        raise StageError(
            "the labelled pictures come from two models, two kinds of pictures, or two values of HELD_OUT; start "
            "labelled again with: lookalike deploy --reprocess labelled"
        )
    return divided(tables, vectors)


def read_segments(directory: Path) -> Iterator[tuple[LabelTable, FeatureVectors]]:
    """The table and the vectors of each segment, one after the other. Raises StageError if there are none, or if a pair
    does not belong together."""
    files = sorted(directory.glob("*.parquet"))
    if not files:
        raise StageError(
            "the repo labelled holds no pictures: put some into the library with `lookalike add`, and wait for "
            "features and labelled"
        )
    for file in files:
        table = LabelTable.read(file)
        vectors = read_vectors(file.with_suffix(".npy"), table.origin.dimension)
        if len(vectors) != len(table):
            raise StageError(
                f"segment {file.stem} does not have one vector for each labelled picture; start labelled again with: "
                "lookalike deploy --reprocess labelled"
            )
        yield table, vectors


def divided(tables: Sequence[LabelTable], vectors: Sequence[npt.NDArray[Any]]) -> Dataset:
    """The pictures of tables, at least one, in the order of ids, with their vectors, float32 (n, d) each."""
    first = tables[0]
    ids, sources, labels, thumbnails = (
        [each for table in tables for each in getattr(table, name)]
        for name in ("ids", "sources", "labels", "thumbnails")
    )
    held_out = np.fromiter((splits.held_out(id, first.held_out) for id in ids), np.bool_, len(ids))
    numbers = Counter(label for label, held in zip(labels, held_out.tolist(), strict=True) if not held)
    names = sorted(label for label, number in numbers.items() if number >= FEWEST)
    code_of = {name: code for code, name in enumerate(names)}
    rows = [row for row, label in enumerate(labels) if label in code_of]
    return Dataset(
        ids=[ids[row] for row in rows],
        sources=[sources[row] for row in rows],
        labels=names,
        codes=np.array([code_of[labels[row]] for row in rows], np.int32),
        vectors=np.concatenate(vectors)[rows] if len(rows) < len(ids) else np.concatenate(vectors),
        thumbnails=[thumbnails[row] for row in rows],
        held_out=held_out[rows],
        share=first.held_out,
        origin=first.origin,
        unlearnable={label: numbers[label] for label in sorted({*labels}) if numbers[label] < FEWEST},
        left_out=len(ids) - len(rows),
    )


def _named(labels: Mapping[str, int], most: int = 5) -> str:
    names = sorted(labels)
    return ", ".join([*names[:most], *([f"{len(names) - most} more"] if len(names) > most else [])])
