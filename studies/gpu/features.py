"""lookalike's own way from pictures to vectors on a GPU: its devices, the vectors, pictures a second, on whichever
backend Keras has."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import keras
import numpy as np

from stages.backbone import backbones, devices
from stages.backbone.backbone_spec import BackboneSpec, WeightsOrigin
from stages.backbone.embedder import Embedder
from stages.backbone.gpu_memory import total_memory
from studies.gpu import models, notebook
from studies.gpu.notebook import REHEARSAL, Notebook, best, card_memory, timed

_ROUNDS = 1 if REHEARSAL else 2


def features(notes: Notebook) -> None:
    """The stage's embedder beside the bare model."""
    notes.attempt("devices", lambda: devices.prepare({}))  # before the first model
    notes.note("backend", [keras.backend.backend(), keras.__version__])
    notes.note("GPUs", devices.gpus())
    notes.attempt("memory of the first, MiB, by the driver", lambda: total_memory(0) >> 20)
    for name, (make, side) in models.MODELS.items():
        notes.attempt(name, partial(_measured, name, make, side))


def fraction(notes: Notebook) -> None:
    """A share of the card's memory that is set beforehand."""
    notes.note("devices", devices.prepare({"GPU_MEMORY_FRACTION": "0.3"}))
    name, (make, side) = [*models.MODELS.items()][-1]
    notes.note(name, _measured(name, make, side))


def _measured(name: str, make: Callable[[int], Any], side: int) -> dict[str, object]:
    model, noise = make(side), models.noise(side)
    spec = BackboneSpec(name, side, "max", int(model.outputs[0].shape[1]), 32, "float32", WeightsOrigin("random", ""))
    at_once = devices.passes_at_once(4)
    ours = Embedder(backbones.forward(model), spec, at_once, devices.kind())
    first, vectors = timed(lambda: ours(noise[:32]))
    taken = best(lambda: ours(noise), _ROUNDS)
    return {
        "device": ours.device,
        "passes at once": at_once,
        "first pass, s": round(first, 2),
        "ours, pictures/s": round(len(noise) / taken["least"]),
        **models.rates(model, noise),
        "same bits again": np.array_equal(ours(noise[:32]), vectors),
        "same bits in another batch": np.array_equal(ours(noise[:40])[:32], vectors),
        "card, MiB": card_memory(),
    }


if __name__ == "__main__":
    sys.exit(notebook.main({"features": features, "fraction": fraction}))
