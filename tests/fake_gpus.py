"""Processes that see a fake GPU, as TensorFlow's context shows it; see tests/fakegpu/sitecustomize.py."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.gc_prelude import GC_PRELUDE

_DIRECTORY = Path(__file__).parent / "fakegpu"
_ROOT = Path(__file__).parent.parent
_HIDING = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")


def variables(log: Path) -> dict[str, str]:
    """The variables of a process that sees the fake GPU. log: the file that gets a line for each context of TensorFlow
    that starts, "1 GPU" if it may use the GPU, "0 GPU" if not, and ", TF32" if products are rounded."""
    return {"PYTHONPATH": str(_DIRECTORY), "FAKE_GPU_LOG": str(log)}


def python(program: str, log: Path, environment: Mapping[str, str] | None = None) -> list[str]:
    """The lines that a program in Python prints in a process that sees the fake GPU."""
    kept = {name: value for name, value in os.environ.items() if name not in _HIDING}
    env = {**kept, **variables(log), "TF_CPP_MIN_LOG_LEVEL": "3", **(environment or {})}
    done = subprocess.run(
        [sys.executable, "-c", GC_PRELUDE + program], env=env, cwd=_ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
