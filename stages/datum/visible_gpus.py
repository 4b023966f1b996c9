"""The GPUs that this process may use, found without starting CUDA."""

from collections.abc import Mapping
from pathlib import Path

_NO_DEVICES = {"", "-1", "none", "void", "nodevfiles"}


def gpu_visible(environment: Mapping[str, str], devices: Path = Path("/dev")) -> bool:
    """Whether this process may use an NVIDIA GPU. Does not start CUDA.

    CUDA ignores everything in CUDA_VISIBLE_DEVICES from the first invalid entry on, so an empty or negative first entry
    hides all devices.
    """
    for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
        value = environment.get(name)
        if value is not None and value.split(",")[0].strip().lower() in _NO_DEVICES:
            return False
    return any(devices.glob("nvidia[0-9]*")) or (devices / "dxg").exists()  # dxg: the GPU under WSL
