"""The environment variables of user code, on the machine itself and in containers. Starts nothing."""

import os
import sys
from collections.abc import Collection, Iterable
from pathlib import Path

from localpachd.worker.gpu_pool import visible
from localpachd.worker.relay import LOOPBACK
from localpachd.worker.tasks import DatumWork, Task, WorkerPod

_LONGEST_TEMPORARY = 64  # sockets are made in there, and their paths may have 107 bytes

PFS = "/pfs"
PFS_VARIABLE = "LOCALPACHD_PFS"
"""The variable that names the directory standing in for `/pfs`, for processes that cannot have `/pfs`."""
WORKER_PORT = "PPS_WORKER_GRPC_PORT"
"""The variable by which a process finds the port for its NextDatum calls."""
POD_NAME = "PPS_POD_NAME"
"""The variable with the name of the worker that a process runs in."""

# Those of the server's own variables that programs need on this machine, as an image would set them, and the usual ones
# that tune numerical libraries. All others may be secrets, and stay with the server.
_PASSED_ON = frozenset((
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "LD_LIBRARY_PATH", "PYTHONPATH",
    "PYTHONDONTWRITEBYTECODE", "XDG_CACHE_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "CUDA_HOME", "CUDA_PATH",
    "CUDA_DEVICE_ORDER", "CUDA_CACHE_PATH", "XLA_FLAGS", "KERAS_HOME", "KERAS_BACKEND", "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE", "MKL_NUM_THREADS", "TF_CPP_MIN_LOG_LEVEL", "TF_ENABLE_ONEDNN_OPTS",
    "TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_FORCE_GPU_ALLOW_GROWTH", "TF_GPU_ALLOCATOR",
))  # fmt: skip
_LOCALE = "LC_"


class EnvironmentProblem(Exception):
    """The task cannot be run as specified; the text is the reason."""


def task_variables(task: Task) -> dict[str, str]:
    """The variables of a task, the same in every backend: those of its pod, and `transform.env` on top."""
    variables = {}
    if task.refusing_port:
        variables[WORKER_PORT] = str(task.refusing_port)
    return variables | _pod_variables(task.pod) | dict(task.env)


def _pod_variables(pod: WorkerPod) -> dict[str, str]:
    """The variables of a pod on a cluster that have a meaning here. Clients find the server by some of them."""
    variables = {}
    if pod.worker:
        variables[POD_NAME] = pod.worker
    if pod.server_port:
        port = str(pod.server_port)
        variables |= {"PACHD_PEER_SERVICE_HOST": LOOPBACK, "PACHD_PEER_SERVICE_PORT": port, "PEER_PORT": port}
    if pod.pipeline:
        variables |= {
            "PACH_IN_WORKER": "true",
            "PACH_NAMESPACE": "default",
            "PPS_WORKER_IP": LOOPBACK,
            "PPS_PROJECT_NAME": pod.project,
            "PPS_PIPELINE_NAME": pod.pipeline,
            "PPS_SPEC_COMMIT": pod.spec_commit,
        }
    return variables


def machine_variables(
    task: Task, shown: str, temporary: str, gpus: tuple[str, ...], further: Collection[str] = ()
) -> dict[str, str]:
    """The variables of a worker's processes on the machine itself, without those of any datum.

    The machine stands in for the container image, so some of the server's own variables come first, and those named by
    `further`. `python3` is the server's interpreter. `shown` is the path of `/pfs` as processes see it.
    """
    env = {
        name: value
        for name, value in os.environ.items()
        if name in _PASSED_ON or name in further or name.startswith(_LOCALE)
    }
    env["PYTHONUNBUFFERED"] = "1"  # what is printed should be in the log even when the process is killed
    if len(temporary) <= _LONGEST_TEMPORARY:
        env["TMPDIR"] = temporary
    env |= visible(gpus)
    env |= task_variables(task)
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env.get('PATH', os.defpath)}"
    if shown != PFS:
        env[PFS_VARIABLE] = shown
    return env


def container_variables(task: Task, image: Iterable[str], gpus: int) -> dict[str, str]:
    """The variables of a worker's processes in a container of an image with these variables (`KEY=value`), without
    those of any datum. A container numbers its GPUs from 0, whatever their numbers on the machine.
    """
    env = dict(pair.partition("=")[::2] for pair in image)
    env["PYTHONUNBUFFERED"] = "1"  # what is printed should be in the log even when the process is killed
    return env | visible(tuple(str(number) for number in range(gpus))) | task_variables(task)


def datum_variables(work: DatumWork, shown: str) -> dict[str, str]:
    """A datum's own variables, its paths as processes see them."""
    if shown == PFS:
        return dict(work.env)
    names = {each.name for each in work.inputs}
    return {
        name: f"{shown}{value.removeprefix(PFS)}" if name in names and value.startswith(f"{PFS}/") else value
        for name, value in work.env.items()
    }
