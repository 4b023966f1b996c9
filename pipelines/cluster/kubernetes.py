"""The Kubernetes cluster that kubectl would talk to here, asked by a program of its own (`kube`)."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.errors import LookalikeError


def holdings() -> Mapping[str, Any]:
    """The nodes that have GPUs and the pods that hold some, as `kube.holdings` says. Raises LookalikeError where the
    cluster does not answer."""
    return _asked("holdings")


def troubles(namespace: str = "") -> Mapping[str, Sequence[str]]:
    """What keeps the workers of pipelines (project/name) in a namespace ("" for the context's own) from running, in
    Kubernetes' words. Raises LookalikeError where the cluster does not answer."""
    return _asked("troubles", *_in(namespace))


def capacity(namespace: str = "") -> Mapping[str, Any]:
    """What the nodes and the quotas of a namespace ("" for the context's own) can give, as `kube.capacity` says. Raises
    LookalikeError where the cluster does not answer."""
    return _asked("capacity", *_in(namespace))


def _in(namespace: str) -> Sequence[str]:
    return ("--namespace", namespace) if namespace else ()


def _asked(*arguments: str) -> Mapping[str, Any]:
    program = [sys.executable, "-m", "pipelines.cluster.kube", *arguments]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LookalikeError(done.stderr.strip().rpartition("\n")[2])
    answer: Mapping[str, Any] = json.loads(done.stdout)
    return answer
