"""The settings of GPU memory, which the specs of stages with a GPU state. Knows no backend of Keras, so that a wrong
one is found without it."""

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass

from stages.datum.contract import StageError

GROWTH = "GPU_MEMORY_GROWTH"
FRACTION = "GPU_MEMORY_FRACTION"


NO_GPU = "no GPU: computing on the CPU"
"""The line of the log about a machine on which the settings have no effect."""


@dataclass(frozen=True)
class GpuMemory:
    """How much memory of each GPU a backend takes: as it needs (growth), a fixed fraction, or (neither) all of it."""

    growth: bool
    fraction: float | None  # of the device's whole memory, over 0 and up to 1

    def limit(self, total: int) -> int:
        """The fraction of `total` bytes in whole MiB, TensorFlow's unit; at least 1."""
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
