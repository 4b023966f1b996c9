"""The machine's card, processor and packages, and the project's own tests on it. Imports nothing that may be
missing there."""

import importlib.metadata
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from stages.datum.visible_gpus import gpu_visible
from studies.gpu import notebook
from studies.gpu.notebook import Notebook

_CARD = "name,memory.total,memory.used,driver_version,clocks.sm,clocks.max.sm,power.limit,compute_mode"
_DESCRIPTIONS = {
    "nvidia-smi": ["nvidia-smi", f"--query-gpu={_CARD}", "--format=csv"],
    "cpu": ["lscpu"],
    "kernel": ["uname", "-a"],
}
_PACKAGES = (
    "cuda-bindings", "cudf-cu13", "cuml-cu12", "cuml-cu13", "cupy-cuda12x", "cupy-cuda13x", "grpcio", "hypothesis",
    "jax", "keras", "numba", "numba-cuda", "numpy", "nvidia-cublas", "nvidia-nvjitlink", "onnxruntime", "pandas",
    "pillow", "protobuf", "pyarrow", "pytest", "rmm-cu13", "scikit-image", "scikit-learn", "scipy", "tensorflow",
    "threadpoolctl", "torch",
)  # fmt: skip

_PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--override-ini=addopts=", "-rsxX")
_ON_GPUS = "tests/stages/test_on_gpus.py"


def card(notes: Notebook) -> None:
    """The card, the processor, and the versions of all that matters."""
    for name, command in _DESCRIPTIONS.items():
        notes.attempt(name, partial(_said, command))
    notes.note("python", sys.version)
    notes.note("cores", len(os.sched_getaffinity(0)))
    notes.note("memory, GiB", os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30)
    # Of two versions the first on the path counts, so it comes last here.
    there = {each.metadata["Name"].lower(): each.version for each in reversed([*importlib.metadata.distributions()])}
    notes.note("versions", {name: there.get(name) for name in _PACKAGES})
    notes.note("stages sees a GPU", gpu_visible(os.environ))
    notes.note("devices", sorted(str(each) for each in Path("/dev").glob("nvidia*")))


def cuml_tests(notes: Notebook) -> None:
    """The project's own tests that need a GPU and no TensorFlow."""
    notes.note("cuml", _tested("--confcutdir=tests/stages/knn", "tests/stages/knn/test_cuml_backend.py"))
    notes.note("stages", _tested("--confcutdir=tests/stages", _ON_GPUS, "-k", "cuml or codes"))


def tensorflow_tests(notes: Notebook) -> None:
    """The project's own tests of TensorFlow on a GPU."""
    chosen = ("tests/stages/backbone/test_devices.py", _ON_GPUS, "-k", "not cuml and not codes")
    notes.note("tests", _tested("--confcutdir=tests/stages", *chosen))


def _said(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()[:2500]


def _tested(*arguments: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, *_PYTEST, *arguments], capture_output=True, text=True)
    return {"code": done.returncode, "end": done.stdout[-4000:], "errors": done.stderr[-800:]}


if __name__ == "__main__":
    sys.exit(notebook.main({"card": card, "cuml_tests": cuml_tests, "tensorflow_tests": tensorflow_tests}))
