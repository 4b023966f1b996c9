"""TensorFlow, which fixes its devices when the first tensor is made."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from stages.backbone.forward_passes import ForwardPass
from stages.backbone.gpu_memory import GpuMemory, total_memory
from stages.datum.contract import StageError

_done = False


def prepare(memory: GpuMemory) -> None:
    """Raises StageError if TensorFlow already runs on GPUs with other settings, as after a tensor was made."""
    global _done
    try:
        for number, gpu in enumerate(tf.config.list_physical_devices("GPU")):
            if memory.fraction is None:
                tf.config.experimental.set_memory_growth(gpu, memory.growth)
            else:
                limit = tf.config.LogicalDeviceConfiguration(memory_limit=memory.limit(total_memory(number)))
                tf.config.set_logical_device_configuration(gpu, [limit])
    except (RuntimeError, ValueError) as error:
        before = "with other settings" if _done else "with its own settings, since a tensor was made first"
        raise StageError(f"TensorFlow has already taken the GPU's memory {before}: {error}") from error
    # Both are part of a backbone's identity: TF32 rounds to 10 bits, and the fastest kernels sum in any order.
    tf.config.experimental.enable_tensor_float_32_execution(False)
    tf.config.experimental.enable_op_determinism()
    _done = True


def gpus() -> list[str]:
    found = tf.config.list_physical_devices("GPU")
    return [str(tf.config.experimental.get_device_details(each).get("device_name") or "GPU") for each in found]


def forward(model: Any) -> ForwardPass:
    # XLA on the CPU is many times slower for these models, and its fusions would change the result.
    model.compile(jit_compile=False)
    return lambda pictures: np.asarray(model.predict_on_batch(pictures))
