"""PyTorch, which takes a GPU's memory as it needs it."""

from __future__ import annotations

import atexit
import gc
import os
from typing import Any

import keras
import numpy as np
import torch

from stages.backbone.forward_passes import ForwardPass
from stages.backbone.gpu_memory import GROWTH, GpuMemory
from stages.datum.contract import StageError

# Triton, which PyTorch imports, complains at the end of a process of all that stages.datum.contract.load exempts.
atexit.register(gc.unfreeze)


def prepare(memory: GpuMemory) -> None:
    """Raises StageError if all memory is to be taken at the start, which PyTorch cannot."""
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # without it cuBLAS may sum in any order
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False  # which chooses kernels by the time that they take
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    for number in range(len(gpus())):
        if memory.fraction is not None:
            torch.cuda.set_per_process_memory_fraction(memory.fraction, number)
        elif not memory.growth:
            raise StageError(f"{GROWTH}=false: PyTorch takes memory as it needs it, so remove it from the spec's env")


def gpus() -> list[str]:
    place = keras.ops.zeros(1).device.type  # the kind of device that Keras takes
    if place == "cuda":
        return [str(torch.cuda.get_device_name(number)) for number in range(torch.cuda.device_count())]
    return [] if place == "cpu" else [str(place)]


def forward(model: Any) -> ForwardPass:
    def run(pictures: Any) -> Any:
        with torch.inference_mode():
            return np.asarray(model(pictures, training=False).cpu())

    return run
