"""The GPUs that this process may use, found without starting CUDA, and lines of the log on one that is there and not
used, or not as it was meant: `lookalike status` repeats them. Only the standard library."""

from collections.abc import Mapping
from pathlib import Path

_NO_DEVICES = {"", "-1", "none", "void", "nodevfiles"}
_MARK = "GPU: "


def notice(text: str) -> str:
    """The line of the log for a text on the GPU."""
    return f"{_MARK}{text}"


def notice_text(line: str) -> str | None:
    """The text on the GPU in a line of the log; None for any other line."""
    found = line.strip()
    return found.removeprefix(_MARK) if found.startswith(_MARK) else None


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
