"""Owns the measurement of the forward passes of features, on ResNet50: Keras's `predict` as the article has it, ours,
and the bare forward pass, at our fixed shape and at the best one. Weights are random: they do not change the speed."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from collections.abc import Callable
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from benchmarks.embedding import BATCH, resnet50
from benchmarks.report import Line, Result, Row, interleaved, line, timed
from stages import devices
from stages.backbonespec import BackboneSpec, Weights
from stages.embedders import Embedder

SIZE = 96
_LARGER = (64, 128, 256)


def measure(pictures: int, rounds: int) -> Result:
    """Pictures a second; so many of them, rounded up to whole batches of any size."""
    print(devices.prepare({}))
    count = -(-pictures // max(_LARGER)) * max(_LARGER)
    noise = np.random.default_rng(0).integers(0, 256, (count, SIZE, SIZE, 3), np.uint8)
    model = resnet50(keras, SIZE)
    ours = Embedder(model, BackboneSpec("resnet50", SIZE, "max", 2048, BATCH, "float32", Weights("random", "")))
    forward = tf.function(lambda some: model(some, training=False), autograph=False)
    ways: dict[str, Callable[[], object]] = {
        "ours": lambda: ours(noise),
        "keras": lambda: model.predict(noise, verbose=0),
        **{f"bare {batch}": partial(_bare, forward, noise, batch) for batch in (BATCH, *_LARGER)},
    }
    for work in ways.values():
        work()  # what compiles does so now
    taken = dict(zip(ways, interleaved(rounds, *(partial(timed, work) for work in ways.values())), strict=True))
    rates = {name: count / seconds for name, seconds in taken.items()}
    best = max((name for name in rates if name.startswith("bare")), key=rates.__getitem__)
    rows = [Row("features", name, seconds, rates[name]) for name, seconds in taken.items()]
    rows.append(Row("features", "ceiling", taken[best], rates[best]))
    ratio = rates[f"bare {BATCH}"] / rates["ours"]
    what = f"features, ResNet50, {SIZE} px, ours, beside the bare pass of {BATCH}"
    padded = -(-400 // BATCH) * BATCH
    lines = [
        line(what, taken["ours"], taken[f"bare {BATCH}"], "s", "1.10", ratio <= 1.1, 2),
        Line("features, ours", f"{rates['ours']:,.0f} pictures/s"),
        Line("features, Keras's predict", f"{rates['keras']:,.0f} pictures/s"),
        Line(f"features, {best}, the ceiling", f"{rates[best]:,.0f} pictures/s"),
        Line("padding of a part of 400 pictures", f"{padded} are computed, {padded / 400 - 1:.0%} more"),
    ]
    return Result(tuple(rows), tuple(lines))


def _bare(forward: Any, noise: NDArray[np.uint8], batch: int) -> list[NDArray[np.float32]]:
    return [forward(tf.constant(noise[start : start + batch])).numpy() for start in range(0, len(noise), batch)]
