"""The Kubernetes cluster of kubectl's active context, queried by a separate program (`kube`)."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.errors import LookalikeError


def holdings() -> Mapping[str, Any]:
    """The nodes that have GPUs and the pods that hold any, as `kube_api.holdings` gives them. Raises LookalikeError if
    the cluster does not answer."""
    return _asked("holdings")


def troubles(namespace: str = "") -> Mapping[str, Sequence[str]]:
    """The reasons, in Kubernetes' words, for which workers of pipelines (project/name) in a namespace ("" for the
    context's own) do not run. Raises LookalikeError if the cluster does not answer."""
    return _asked("troubles", *_in(namespace))


def capacity(namespace: str = "") -> Mapping[str, Any]:
    """The capacity of the nodes and the quotas of a namespace ("" for the context's own), as `kube_api.capacity` gives
    it. Raises LookalikeError if the cluster does not answer."""
    return _asked("capacity", *_in(namespace))


def _in(namespace: str) -> Sequence[str]:
    return ("--namespace", namespace) if namespace else ()


def _asked(*arguments: str) -> Mapping[str, Any]:
    program = [sys.executable, "-m", "pipelines.cluster.kube_api", *arguments]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LookalikeError(done.stderr.strip().rpartition("\n")[2])
    answer: Mapping[str, Any] = json.loads(done.stdout)
    return answer
