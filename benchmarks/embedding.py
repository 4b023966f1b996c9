"""Owns the measurement of ResNet50, the original system's backbone, in pictures a second: as lookalike runs it, and in
batches that suit a GPU, on the backend that Keras uses. Weights are random, which makes no difference to the speed."""

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Result, Row, line, timed

SIZES = (96, 224)
"""Sides of the pictures in pixels: the original system's, and the one that the network was designed for."""

BATCH = 32
"""The batch size of lookalike, see stages.backbone.backbones."""

LARGE = 256

_STAGES = importlib.util.find_spec("python_pachyderm") is not None
"""Whether lookalike's own stages can be imported here."""


def measure(pictures: int, rounds: int, sizes: tuple[int, ...] = SIZES) -> Result:
    """Pictures a second at each size, the best of several rounds; the bound is the same model in large batches."""
    keras = importlib.import_module("keras")
    if _STAGES:
        print(importlib.import_module("stages.backbone.devices").prepare({}))  # before the first model
    rows, lines = [], []
    for size in sizes:
        noise = np.random.default_rng(0).integers(0, 256, (pictures, size, size, 3), np.uint8)
        model = resnet50(keras, size)
        ways = dict(_ways(model, size))
        rates = {}
        for name, embed in ways.items():
            embed(noise[:LARGE])  # compiles, if the backend does
            rates[name] = pictures / min(timed(partial(embed, noise)) for _ in range(rounds))
            rows.append(Row(f"resnet50 {size} px", name, rate=rates[name]))
        bound = rates.pop(f"batches of {LARGE}")
        for name, rate in rates.items():
            what = f"ResNet50, {size} × {size}, {name} (Keras on {keras.backend.backend()})"
            lines.append(line(what, rate, bound, "pictures/s", digits=0))
    return Result(tuple(rows), tuple(lines))


def _ways(model: Any, size: int) -> Iterator[tuple[str, Callable[[NDArray[np.uint8]], object]]]:
    yield f"batches of {LARGE}", lambda noise: _in_batches(model, noise, LARGE)
    if not _STAGES:
        yield f"batches of {BATCH}", lambda noise: _in_batches(model, noise, BATCH)
        return
    spec = importlib.import_module("stages.backbone.backbone_spec")
    described = spec.BackboneSpec("resnet50", size, "max", 2048, BATCH, "float32", spec.WeightsOrigin("random", ""))
    forward = importlib.import_module("stages.backbone.backbones").forward(model)
    yield "as lookalike runs it", importlib.import_module("stages.backbone.embedder").Embedder(forward, described)


def _in_batches(model: Any, noise: NDArray[np.uint8], batch: int) -> list[Any]:
    return [model.predict_on_batch(noise[start : start + batch]) for start in range(0, len(noise), batch)]


def resnet50(keras: Any, size: int) -> Any:
    """The original system's model for pictures of this side, uint8 in, compiled for inference; random weights."""
    pixels = keras.Input((size, size, 3), dtype="uint8")
    raw = keras.layers.Rescaling(1.0)(pixels)
    base = keras.applications.ResNet50(include_top=False, pooling="max", input_tensor=raw, weights=None)
    model = keras.Model(pixels, base.output)
    model.compile(jit_compile=keras.backend.backend() == "jax")
    return model
