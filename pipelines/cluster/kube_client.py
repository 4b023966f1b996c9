"""The Kubernetes cluster of kubectl's active context, queried by a separate program (`kube_api`)."""

import json
import subprocess
import sys
from typing import Any, Literal

from pipelines.errors import LookalikeError

KubeQuestion = Literal["holdings", "troubles", "capacity"]


def ask(question: KubeQuestion, namespace: str = "") -> dict[str, Any]:
    """The answer of the function of that name in `kube_api` for a namespace, "" for the context's own. Raises
    LookalikeError if the cluster does not answer."""
    program = [sys.executable, "-m", "pipelines.cluster.kube_api", question, "--namespace", namespace]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LookalikeError(done.stderr.strip().rpartition("\n")[2])
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
