"""Labelled pictures for the tests of trainings: vectors around a centre for each label."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stages.classify.training import dataset
from stages.classify.training.dataset import Dataset
from stages.files.tables.label_table import LabelTable
from stages.record.origin import Origin
from tests.stages.picture_indexes import id_of

DIMENSION = 8
LABELS = ("ape", "cat", "dog")
MODEL = "ab" * 32


def clouds(pictures: int = 120, noise: float = 1.0, labels: tuple[str, ...] = LABELS) -> dict[str, str]:
    """Names of pictures with their labels; `vector` finds the noise in the name."""
    return {f"{labels[at % len(labels)]}/{noise}/{at}.jpg": labels[at % len(labels)] for at in range(pictures)}


def vector(name: str, label: str) -> npt.NDArray[np.float32]:
    """The centre of the label, and noise."""
    centre = np.random.default_rng(int(id_of(label)[:8], 16)).normal(size=DIMENSION)
    noise = float(name.split("/")[1]) if name.count("/") == 2 else 1.0
    return (centre + noise * np.random.default_rng(int(id_of(name)[:8], 16)).normal(size=DIMENSION)).astype(np.float32)


def write(root: Path, labels: Mapping[str, str], share: float = 0.2, model: str = MODEL) -> Path:
    """What the stage labelled writes, for pictures by name, in a directory for each; returns it."""
    root.mkdir(parents=True, exist_ok=True)
    for segment in "0123456789abcdef":
        names = sorted((name for name in labels if id_of(name)[0] == segment), key=id_of)
        _table(names, labels, share, model).write(root / f"{segment}.parquet")
        np.save(root / f"{segment}.npy", _vectors(names, labels))
    return root


def made(labels: Mapping[str, str], share: float = 0.2) -> Dataset:
    """The same in memory."""
    names = sorted(labels, key=id_of)
    return dataset.divided([_table(names, labels, share, MODEL)], [_vectors(names, labels)])


def _vectors(names: list[str], labels: Mapping[str, str]) -> npt.NDArray[np.float32]:
    return np.array([vector(name, labels[name]) for name in names], np.float32).reshape(-1, DIMENSION)


def _table(names: list[str], labels: Mapping[str, str], share: float, model: str) -> LabelTable:
    return LabelTable(
        ids=[id_of(name) for name in names],
        sources=names,
        labels=[labels[name] for name in names],
        thumbnails=[b"jpeg of " + name.encode() for name in names],
        origin=Origin(model, "pad", 32, DIMENSION, "small at 32 px"),
        held_out=share,
    )
