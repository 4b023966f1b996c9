"""Objects of Kubernetes as its API server lists them."""

from typing import Any


def node(name: str, ready: bool = True, gpus: int = 0, images: Any = None, **spec: Any) -> dict[str, Any]:
    allocatable = {"cpu": "7910m", "memory": "28Gi", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": spec,
        "status": {"allocatable": allocatable, "conditions": conditions, "images": images},
    }


def pod(
    name: str,
    pipeline: str = "",
    on: str = "",
    phase: str = "Running",
    gpus: int = 0,
    project: str = "default",
    requests: Any = None,
    **status: Any,
) -> Any:
    """A worker of a pipeline in the namespace pach, or another pod elsewhere."""
    limits = {"nvidia.com/gpu": str(gpus), "memory": "4Gi"} if gpus else {}
    init = [{"name": "init", "resources": {"limits": limits}}] if pipeline else []
    user = {"name": "user", "resources": {"limits": limits, "requests": requests}}
    where = {"name": name, "namespace": "pach" if pipeline else "other"}
    return {
        "metadata": {**where, "labels": labels(pipeline, project) if pipeline else None},
        "spec": {
            "nodeName": on or None,
            "initContainers": init,
            "containers": [user, {"name": "storage", "resources": {}}],
        },
        "status": {"phase": phase, **status},
    }


def labels(pipeline: str, project: str = "default") -> dict[str, str]:
    of_workers = {"suite": "pachyderm", "component": "worker", "app": "pipeline"}
    return {**of_workers, "pipelineName": pipeline, "pipelineProject": project}


def event(kind: str, name: str, reason: str, message: str = "", count: int = 1) -> dict[str, Any]:
    return {
        "metadata": {"name": f"{name}.1", "namespace": "pach"},
        "involvedObject": {"kind": kind, "namespace": "pach", "name": name},
        "reason": reason,
        "message": message,
        "count": count,
        "type": "Warning",
    }
