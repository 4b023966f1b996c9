"""Trainings without a network: the repos labelled, labels, train and models as the stages write them."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from stages.classify.training import dataset, run_records, splits
from stages.classify.training.run_records import AccuracyScore, PictureCounts, TrainingRun
from stages.classify.training.training_parameters import parse
from stages.files.tables.label_table import LabelTable
from stages.files.tables.prediction_table import CROSS_VALIDATION, HELD_OUT, PredictionTable
from stages.record.origin import Origin
from tests.stages.picture_indexes import id_of

SHARE = 0.2
BACKBONE = Origin("ab" * 32, "pad", 32, 6, "small at 32 px")

Predict = Callable[[str, str], tuple[str, float]]
"""From a picture's source and label to the predicted label and its probability."""


@dataclass(frozen=True)
class Library:
    """Labelled pictures: the label of each source, which is one picture."""

    of: Mapping[str, str]

    def ids(self) -> dict[str, str]:
        """The id of each source's picture, sorted by id."""
        ids = {source: id_of(source) for source in self.of}
        return dict(sorted(ids.items(), key=lambda each: each[1]))

    def learnable(self) -> list[str]:
        """The labels with enough training pictures, sorted."""
        training = [self.of[source] for source, id in self.ids().items() if not splits.held_out(id, SHARE)]
        return sorted({label for label in training if training.count(label) >= dataset.FEWEST})


def library(labels: Sequence[str], each: int = 20) -> Library:
    """So many pictures of every label."""
    return Library({f"{label}/{number:03d}.jpg": label for label in labels for number in range(each)})


def thumbnail(source: str, side: int = 32) -> bytes:
    """A small JPEG file, of a colour that the source has."""
    colour = hashlib.sha256(source.encode("utf-8", "surrogateescape")).digest()[:3]
    file = io.BytesIO()
    Image.new("RGB", (side, side * 3 // 4), (colour[0], colour[1], colour[2])).save(file, "JPEG")
    return file.getvalue()


def vector_of(source: str, dimension: int = BACKBONE.dimension) -> npt.NDArray[np.float32]:
    """Any vector."""
    lot = np.random.default_rng(int(id_of(source)[:12], 16))
    return lot.normal(size=dimension).astype(np.float32)


def write_repos(
    root: Path, given: Library, others: Mapping[str, Sequence[str]] | None = None, backbone: Origin = BACKBONE
) -> None:
    """Writes the repos `labelled` (two segments or fewer, by the id's first digit) and `labels`. others: the known
    sources of a segment that its table does not name."""
    (root / "labelled" / "left_out").mkdir(parents=True)
    (root / "labels").mkdir()
    rows = "".join(f'"{source}","{label}"\n' for source, label in given.of.items())
    (root / "labels" / "a.csv").write_bytes(f"source,label\n{rows}".encode("utf-8", "surrogateescape"))
    for segment, digits in (("0", "01234567"), ("8", "89abcdef")):
        sources = [source for source, id in given.ids().items() if id[0] in digits]
        table = LabelTable(
            ids=[id_of(source) for source in sources],
            sources=sources,
            labels=[given.of[source] for source in sources],
            thumbnails=[thumbnail(source) for source in sources],
            origin=replace(backbone, devices=("cpu",)),
            held_out=SHARE,
        )
        table.write(root / "labelled" / f"{segment}.parquet")
        np.save(root / "labelled" / f"{segment}.npy", np.stack([*map(vector_of, sources)]))
        known = list((others or {}).get(segment, ()))
        told = {"mixed": {"count": 0, "examples": []}, "known": len(sources) + len(known), "others": known}
        (root / "labelled" / "left_out" / f"{segment}.json").write_text(json.dumps(told))
    (root / "train").mkdir(exist_ok=True)


def write_run(
    root: Path,
    name: str,
    given: Library,
    predict: Predict,
    parameters: str = "{}",
    weights: int = 9,
    notes: Sequence[str] = (),
) -> TrainingRun:
    """Writes a successful run to the repo `train`. predict is asked about every picture of a label that can be
    learnt."""
    labels = given.learnable()
    ids = {source: id for source, id in given.ids().items() if given.of[source] in labels}
    own = [given.of[source] for source in ids]
    found = [predict(source, given.of[source]) for source in ids]
    held = [splits.held_out(id, SHARE) for id in ids.values()]
    right = [label == predicted for label, (predicted, _) in zip(own, found, strict=True)]
    probabilities = np.array([each for _, each in found], np.float32)
    predictions = PredictionTable(
        ids=list(ids.values()),
        sources=list(ids),
        labels=own,
        splits=[HELD_OUT if each else CROSS_VALIDATION for each in held],
        predicted=[predicted for predicted, _ in found],
        probabilities=probabilities,
        true_probabilities=np.where(right, probabilities, (1 - probabilities) / 2).astype(np.float32),
    )
    validated, unseen = (
        AccuracyScore.counted(sum(r for r, h in zip(right, held, strict=True) if h == which), held.count(which))
        for which in (False, True)
    )
    epochs = np.arange(1, 31)
    chosen = parse(f"{name}.json", parameters.encode())
    run = TrainingRun(
        name=name,
        parameters=chosen,
        labels=labels,
        takes=chosen.takes,
        pictures=PictureCounts(held.count(False), held.count(True), len(given.of) - len(ids)),
        cross_validation=validated,
        held_out=unseen,
        temperature=1.25,
        ece=0.0321,
        curves={
            "loss": (2 / epochs).tolist(),
            "accuracy": (1 - 0.7 / epochs).tolist(),
            "validation_loss": (2.2 / epochs**0.8).tolist(),
            "validation_accuracy": (1 - 0.8 / epochs).tolist(),
        },
        weights=weights,
        origin=BACKBONE,
        device="cpu",
        held_out_share=SHARE,
        notes=notes,
    )
    directory = root / "train" / name
    directory.mkdir(parents=True)
    (directory / run_records.FILE).write_bytes(run_records.format_run(run))
    (directory / run_records.MODEL).write_bytes(f"the network of {name}".encode())
    predictions.write(directory / run_records.PREDICTIONS)
    return run


def write_failed(root: Path, name: str, reason: str) -> None:
    """Writes a failed run to the repo `train`."""
    directory = root / "train" / name
    directory.mkdir(parents=True)
    (directory / run_records.FILE).write_bytes(run_records.format_run(TrainingRun(name, None, reason)))


def wrong_now_and_then(labels: Sequence[str], often: float = 0.15) -> Predict:
    """Predicts another label for a share of the pictures, which the source alone decides."""

    def predict(source: str, label: str) -> tuple[str, float]:
        lot = np.random.default_rng(int(id_of(source)[:8], 16))
        wrong = lot.random() < often
        others = [each for each in labels if each != label]
        other = others[lot.integers(len(others))]
        return (other, 0.3 + 0.5 * lot.random()) if wrong else (label, 0.5 + lot.random() / 2)

    return predict
