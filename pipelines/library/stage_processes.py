"""The stages' programs run on this machine as processes of this command. They hold no lease of a GPU, so they see none:
TensorFlow would take all memory of one that a server leases to its workers. Knows no stage.
"""

import os
import sys
from collections.abc import Mapping
from types import MappingProxyType

_NO_GPUS = {"CUDA_VISIBLE_DEVICES": ""}


def command(stage: str, *arguments: str) -> list[str]:
    """The command line of a stage's program."""
    # -P: a folder named stages in the current directory must not be imported instead of ours.
    return [sys.executable, "-P", "-m", f"stages.{stage}", *arguments]


def environment(variables: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """The variables of such a process: those of this one, these, and those that hide all GPUs."""
    return {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **variables, **_NO_GPUS}


def hide_gpus() -> None:
    """Hides all GPUs from this process itself, which is about to run a stage's code. To be called before CUDA starts:
    before TensorFlow or cuML is imported."""
    os.environ.update(_NO_GPUS)
