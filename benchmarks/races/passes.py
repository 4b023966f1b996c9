"""Owns the bare forward passes of a sample of a library's pictures, the least that its vectors take: the model alone,
on one array, in the stage's batches, one after the other or one on each core, each in a process of its own."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.kit.contenders import Contender
from stages.backbone.backbone_spec import SPEC_FILE, parse_spec

PICTURES = 2_048
"""The most pictures of a sample."""

_MODULE = "benchmarks.races.forwards"
WAYS = ("bare", "abreast")
"""One after the other, and one on each core."""

_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Pass:
    """The seconds that a sample of so many pictures took, and those of processor time: the least of some rounds."""

    pictures: int
    seconds: float
    processor: float


def prepare(place: Path, backbone: Path, sample: NDArray[np.uint8]) -> None:
    """Writes the files of the measurement into a directory. sample: uint8 (n, H, W, 3)."""
    directory = place / "passes"
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(backbone, directory / "models")
    np.save(directory / "pictures.npy", sample)


def measure(place: Path) -> Pass:
    """Measures with the files that `prepare` wrote. Raises RuntimeError if a process fails."""
    directory = place / "passes"
    batch = parse_spec((directory / "models" / SPEC_FILE).read_bytes()).batch
    pictures = len(np.load(directory / "pictures.npy", mmap_mode="r"))
    share = pictures / (-(-pictures // batch) * batch)  # the last batch is filled up
    rounds = []
    for way in WAYS:
        with Contender(_MODULE, f"{way}:{batch}", directory) as contender:
            contender.seconds()  # the first one compiles
            rounds += [(contender.seconds(), contender.processor) for _ in range(_ROUNDS)]
    return Pass(pictures, *(share * min(each) for each in zip(*rounds, strict=True)))


def mean(some: list[Pass]) -> Pass:
    """One pass at the mean pace of several of equal size."""
    count = len(some)
    return Pass(
        some[0].pictures, sum(each.seconds for each in some) / count, sum(each.processor for each in some) / count
    )
