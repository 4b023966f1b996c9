"""Owns the models to measure, and their pictures a second by Keras alone, on whichever backend Keras has. Imports no
TensorFlow."""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from stages.backbone.efficientnet import LITE, efficientnet_lite
from studies.gpu import notebook
from studies.gpu.notebook import REHEARSAL, Notebook, best

Pictures = NDArray[np.uint8]

_LITE = LITE["efficientnet-lite0"]
_BATCHES = (32, 256)
"""lookalike's own, and one that suits a GPU."""

_SIDES = (32, 40) if REHEARSAL else (96, 224)
_ROUNDS = 1 if REHEARSAL else 2


def resnet50(side: int) -> Any:
    """The article's backbone for pictures uint8 (n, side, side, 3). Its weights are random, which makes no difference
    to its speed."""
    pixels = keras.Input((side, side, 3), dtype="uint8")
    raw = keras.layers.Rescaling(1.0)(pixels)
    base = keras.applications.ResNet50(include_top=False, pooling="max", input_tensor=raw, weights=None)
    return keras.Model(pixels, base.output)


def lite0(side: int) -> Any:
    """lookalike's default backbone, with its weights, for pictures uint8 (n, side, side, 3)."""
    return efficientnet_lite(_LITE, side, _LITE.weights_file())


MODELS: Mapping[str, tuple[Callable[[int], Any], int]] = {
    f"{name} {side}": (make, side)
    for name, make, sides in (("resnet50", resnet50, _SIDES), ("efficientnet-lite0", lite0, _SIDES[-1:]))
    for side in sides
}
"""The backbones, and the side of their pictures in pixels."""


def noise(side: int) -> Pictures:
    """Pictures, uint8 (n, side, side, 3)."""
    return np.random.default_rng(0).integers(0, 256, (64 if REHEARSAL else 4096, side, side, 3), np.uint8)


def rates(model: Any, pictures: Pictures) -> dict[str, int]:
    """Pictures a second of the bare model in batches of several sizes."""
    found = {}
    for batch in _BATCHES:
        taken = best(partial(_in_batches, model, pictures, batch), _ROUNDS)
        found[f"bare batches of {batch}, pictures/s"] = round(len(pictures) / taken["least"])
    return found


def keras_alone(notes: Notebook) -> None:
    """Pictures a second of Keras on KERAS_BACKEND, without lookalike's stages."""
    notes.note("backend", [keras.backend.backend(), keras.__version__])

    def measured(make: Callable[[int], Any], side: int) -> dict[str, int]:
        model = make(side)
        model.compile(jit_compile=keras.backend.backend() == "jax")
        return rates(model, noise(side))

    for name, (make, side) in MODELS.items():
        notes.attempt(name, partial(measured, make, side))


def _in_batches(model: Any, pictures: Pictures, batch: int) -> None:
    for start in range(0, len(pictures), batch):
        np.asarray(model.predict_on_batch(pictures[start : start + batch]))


if __name__ == "__main__":
    sys.exit(notebook.main({"keras_alone": keras_alone}))
