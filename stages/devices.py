"""Owns what TensorFlow does with the devices it finds: GPU memory, TF32, deterministic operations. Knows no model.

Must run before the first tensor is made: TensorFlow fixes its devices then.
"""

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass

import keras
import tensorflow as tf

from stages.contract import StageError

GROWTH = "GPU_MEMORY_GROWTH"
FRACTION = "GPU_MEMORY_FRACTION"


@dataclass(frozen=True)
class GpuMemory:
    """How much of each GPU TensorFlow takes: what it needs as it grows, a fixed fraction, or (neither) all of it."""

    growth: bool
    fraction: float | None  # of the device's whole memory, over 0 and up to 1

    def limit(self, total: int) -> int:
        """The fraction of `total` bytes in whole MiB, which is how TensorFlow wants it; at least 1."""
        return max(1, int(total * (self.fraction or 1.0)) >> 20)


def gpu_memory(environment: Mapping[str, str]) -> GpuMemory:
    """Reads GPU_MEMORY_GROWTH (true, the default, or false) and GPU_MEMORY_FRACTION (0.4, say).

    Raises StageError, naming the variable, for a bad value or for growth and a fraction at once.
    """
    growth, fraction = environment.get(GROWTH, "").strip().lower(), environment.get(FRACTION, "").strip()
    if growth not in ("", "true", "false"):
        raise StageError(f"{GROWTH}={growth!r}: must be true or false; change it in the spec's env")
    if not fraction:
        return GpuMemory(growth != "false", None)
    if growth == "true":
        raise StageError(
            f"{GROWTH}=true and {FRACTION}={fraction} exclude each other: memory either grows as needed or is one "
            "fixed part of the device; remove one of them from the spec's env"
        )
    try:
        value = float(fraction)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise StageError(f"{FRACTION}={fraction!r}: must be a number over 0 and up to 1; change it in the spec's env")
    return GpuMemory(False, value)


def prepare(environment: Mapping[str, str]) -> str:
    """Applies the GPU memory settings and makes results repeatable; returns one line about it for the log.

    Doing it again with equal settings is fine. Raises StageError for bad settings, or if TensorFlow already runs
    with others.
    """
    memory = gpu_memory(environment)
    if keras.backend.backend() != "tensorflow":
        if environment.get(GROWTH) or environment.get(FRACTION):
            raise StageError(f"{GROWTH} and {FRACTION} work with Keras on TensorFlow only: unset them or KERAS_BACKEND")
        return f"Keras runs on {keras.backend.backend()}: its own device settings hold"
    gpus = tf.config.list_physical_devices("GPU")
    try:
        for number, gpu in enumerate(gpus):
            if memory.fraction is None:
                tf.config.experimental.set_memory_growth(gpu, memory.growth)
            else:
                limit = tf.config.LogicalDeviceConfiguration(memory_limit=memory.limit(total_memory(number)))
                tf.config.set_logical_device_configuration(gpu, [limit])
    except (RuntimeError, ValueError) as error:
        raise StageError(f"TensorFlow has already taken the GPU's memory in another way: {error}") from error
    # Both are part of a backbone's identity: TF32 rounds to 10 bits, and the fastest kernels add in any order.
    tf.config.experimental.enable_tensor_float_32_execution(False)
    tf.config.experimental.enable_op_determinism()
    return _described(len(gpus), memory)


def passes_at_once() -> int:
    """How many forward passes should be under way together: two where TensorFlow computes on a GPU, so that it has the
    next one at hand while Python takes over the last one's vectors. One where the processor computes, which is busy
    with it, and on Keras's other backends, whose models keep state while they predict."""
    on_gpu = keras.backend.backend() == "tensorflow" and tf.config.list_physical_devices("GPU")
    return 2 if on_gpu else 1


def _described(gpus: int, memory: GpuMemory) -> str:
    if not gpus:
        return "no GPU: computing on the CPU"
    taken = "as it grows" if memory.growth else f"{memory.fraction:g} of it" if memory.fraction else "all of it"
    return f"{gpus} GPU{'s' if gpus > 1 else ''}, memory taken: {taken}"


def total_memory(number: int) -> int:
    """Bytes of memory of a GPU that this process may use, counted from 0 as TensorFlow does.

    Asked of the CUDA driver rather than of NVML, which counts all GPUs of the machine in another order and ignores
    CUDA_VISIBLE_DEVICES and slices of a device. Makes no context, so takes no memory. Raises StageError without one.
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
        raise StageError(f"the CUDA driver cannot be asked for the GPU's memory ({error}); unset {FRACTION}") from error
    if any(codes):
        raise StageError(f"the CUDA driver does not know GPU {number} (error {max(codes)}); unset {FRACTION}")
    return total.value
