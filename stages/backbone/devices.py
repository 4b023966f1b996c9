"""The devices of Keras's backend: GPU memory, TF32, deterministic operations. Knows no model.

A backend fixes its devices when it makes its first tensor, so `prepare` comes before that. `stages.backbone.backbones`
and `stages.zoo` see to it for all models that they load or make.
"""

import os
from collections.abc import Mapping
from typing import Any

import keras

from stages.backbone.embedder import CPU
from stages.backbone.gpu_memory import NO_GPU, GpuMemory, gpu_memory
from stages.datum.contract import load
from stages.record.origin import BACKENDS, TENSORFLOW

_done = False
"""Whether this process has prepared its devices."""


def backend() -> Any:
    """The module of Keras's backend, see stages.backbone.backends."""
    return load(f"stages.backbone.backends.{keras.backend.backend()}_devices")


def prepare(environment: Mapping[str, str]) -> str:
    """Applies the GPU memory settings and makes results repeatable; returns a line for the log.

    May be called again with equal settings. Raises StageError for bad settings, or if the backend already runs on GPUs
    with others.
    """
    global _done
    memory = gpu_memory(environment)
    backend().prepare(memory)
    _done = True
    return _described(gpus(), memory)


def ensure() -> None:
    """Prepares the devices by this process's own variables, unless that is done. Raises StageError as `prepare`."""
    if not _done:
        prepare(os.environ)


def gpus() -> list[str]:
    """The names of the GPUs that compute."""
    found: list[str] = backend().gpus()
    return found


def passes_at_once(on_processors: int) -> int:
    """The number of concurrent forward passes: two on a GPU, so that the next one is ready while Python takes the last
    one's vectors; else the number for processors on TensorFlow, and one on other backends, whose passes use all cores.
    """
    if gpus():
        return 2
    return on_processors if keras.backend.backend() == TENSORFLOW else 1


def kind() -> str:
    """The kind of device that computes vectors: "cpu", or the name of the first GPU."""
    return next(iter(gpus()), CPU)


def _described(found: list[str], memory: GpuMemory) -> str:
    name = keras.backend.backend()
    on = "" if name == TENSORFLOW else f" with {BACKENDS[name]}"
    if not found:
        return NO_GPU + on
    taken = "as it grows" if memory.growth else f"{memory.fraction:g} of it" if memory.fraction else "all of it"
    return f"{len(found)} GPU{'s' if len(found) > 1 else ''}{on}, memory taken: {taken}"
