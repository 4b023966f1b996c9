"""The environment variables of user code, on the machine itself and in containers. Starts nothing."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from localpachd.worker.gpu_pool import visible
from localpachd.worker.tasks import DatumWork, Task

_LONGEST_TEMPORARY = 64  # sockets are made in there, and their paths may have 107 bytes

PFS = "/pfs"
PFS_VARIABLE = "LOCALPACHD_PFS"
"""Names, to processes that cannot have `/pfs`, the directory that stands for it."""
WORKER_PORT = "PPS_WORKER_GRPC_PORT"
"""The variable by which a process finds the port for its NextDatum calls."""

# Of the server's own variables these would mislead user code or the shell that starts it.
_NOT_PASSED_ON = frozenset({PFS_VARIABLE, "OLDPWD", WORKER_PORT, "CUDA_VISIBLE_DEVICES"})


class EnvironmentProblem(Exception):
    """The task cannot be run as it is; the text is the reason."""


def machine_variables(task: Task, shown: str, temporary: str, gpus: tuple[str, ...]) -> dict[str, str]:
    """The variables of a worker's processes on the machine itself, without those of any datum.

    The machine takes the place of the container image, so the server's own variables come first. `python3` is the
    server's interpreter. `shown` is the path by which processes see their `/pfs`.
    """
    env = {name: value for name, value in os.environ.items() if name not in _NOT_PASSED_ON}
    env["PYTHONUNBUFFERED"] = "1"  # what is printed should be in the log even when the process is killed
    if len(temporary) <= _LONGEST_TEMPORARY:
        env["TMPDIR"] = temporary
    env |= visible(gpus)
    env |= task.env
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env.get('PATH', os.defpath)}"
    if shown != PFS:
        env[PFS_VARIABLE] = shown
    return env


def container_variables(task: Task, image: Iterable[str], gpus: int) -> dict[str, str]:
    """The variables of a worker's processes in a container of an image that has these `KEY=value` of its own, without
    those of any datum. However the machine numbers the GPUs that a container was given, it finds them numbered from 0.
    """
    env = dict(pair.partition("=")[::2] for pair in image)
    env["PYTHONUNBUFFERED"] = "1"  # what is printed should be in the log even when the process is killed
    return env | visible(tuple(str(number) for number in range(gpus))) | dict(task.env)


def datum_variables(work: DatumWork, shown: str) -> dict[str, str]:
    """A datum's own variables, its paths as processes see them."""
    if shown == PFS:
        return dict(work.env)
    names = {each.name for each in work.inputs}
    return {
        name: f"{shown}{value.removeprefix(PFS)}" if name in names and value.startswith(f"{PFS}/") else value
        for name, value in work.env.items()
    }
