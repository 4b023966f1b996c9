"""Whether TensorFlow's library computes here as Keras would: on a processor, and with TensorFlow's usual settings."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from stages.backbone.backends import keras_backend
from stages.datum.visible_gpus import gpu_visible
from stages.record.origin import TENSORFLOW

_CUDA = "CUDA_VISIBLE_DEVICES"
_XLA = ("XLA_FLAGS", "TF_XLA_FLAGS")


def matches_keras(environment: Mapping[str, str]) -> bool:
    """Whether vectors are the same bit by bit. Starts nothing: a GPU is only looked for. False if in doubt."""
    return not (
        gpu_visible({name: environment[name] for name in (_CUDA,) if name in environment})  # all that TensorFlow heeds
        or Path("/dev/kfd").exists()  # AMD's GPUs
        or _plugins()
        or any(environment.get(name) for name in _XLA)
        or keras_backend.chosen(environment) != TENSORFLOW
    )


def _plugins() -> bool:
    """Whether TensorFlow's Python would load further kinds of devices."""
    package = find_spec("tensorflow")
    origin = None if package is None else package.origin
    return origin is not None and Path(origin).parent.with_name("tensorflow-plugins").exists()
