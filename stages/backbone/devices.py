"""TensorFlow's settings for its devices: GPU memory, TF32, deterministic operations. Knows no model.

TensorFlow fixes its devices when the first tensor is made, so `prepare` comes before that. `stages.backbone.backbones`
and
`stages.zoo` see to it for all models that they load or make.
"""

import ctypes
import os
from collections.abc import Mapping

import keras
import tensorflow as tf

from stages.backbone.embedder import CPU
from stages.backbone.gpu_memory import FRACTION, GROWTH, NO_GPU, GpuMemory, gpu_memory
from stages.datum.contract import StageError

_done = False
"""Whether this process has prepared its devices."""


def prepare(environment: Mapping[str, str]) -> str:
    """Applies the GPU memory settings and makes results repeatable; returns a line for the log.

    May be called again with equal settings. Raises StageError for bad settings, or if TensorFlow already runs on GPUs
    with others, as it does if a tensor was made before.
    """
    global _done
    memory = gpu_memory(environment)
    if keras.backend.backend() != "tensorflow":
        if environment.get(GROWTH) or environment.get(FRACTION):
            raise StageError(f"{GROWTH} and {FRACTION} work with Keras on TensorFlow only: unset them or KERAS_BACKEND")
        return f"Keras runs on {keras.backend.backend()}, with that backend's own device settings"
    gpus = tf.config.list_physical_devices("GPU")
    try:
        for number, gpu in enumerate(gpus):
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
    return _described(len(gpus), memory)


def ensure() -> None:
    """Prepares the devices by this process's own variables, unless that is done. Raises StageError as `prepare`."""
    if not _done:
        prepare(os.environ)


def passes_at_once(on_processors: int) -> int:
    """The number of concurrent forward passes: two if TensorFlow computes on a GPU, so that the next one is ready while
    Python takes the last one's vectors; else the number for processors, and one on Keras's other backends, whose models
    keep state while they predict."""
    if keras.backend.backend() != "tensorflow":
        return 1
    return 2 if tf.config.list_physical_devices("GPU") else on_processors


def kind() -> str:
    """The kind of device that computes vectors: "cpu", or the name of the first GPU."""
    if keras.backend.backend() != "tensorflow":
        return str(keras.backend.backend())
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return CPU
    return str(tf.config.experimental.get_device_details(gpus[0]).get("device_name") or "GPU")


def _described(gpus: int, memory: GpuMemory) -> str:
    if not gpus:
        return NO_GPU
    taken = "as it grows" if memory.growth else f"{memory.fraction:g} of it" if memory.fraction else "all of it"
    return f"{gpus} GPU{'s' if gpus > 1 else ''}, memory taken: {taken}"


def total_memory(number: int) -> int:
    """The bytes of memory of a GPU that this process may use. number: counted from 0 as in TensorFlow.

    Asks the CUDA driver and not NVML, which counts all GPUs of the machine in another order and ignores
    CUDA_VISIBLE_DEVICES and slices of a device. Makes no context, so it takes no GPU memory. Raises StageError if there
    is no such GPU.
    """
    device, total = ctypes.c_int(), ctypes.c_size_t()
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        codes = (
            driver.cuInit(0),
            driver.cuDeviceGet(ctypes.byref(device), number),
            driver.cuDeviceTotalMem_v2(ctypes.byref(total), device),
        )
    except (OSError, AttributeError) as error:
        raise StageError(f"the CUDA driver does not report the GPU's memory ({error}); unset {FRACTION}") from error
    if any(codes):
        raise StageError(f"the CUDA driver does not know GPU {number} (error {max(codes)}); unset {FRACTION}")
    return total.value
