"""Kubernetes' objects as the plain values that `kube_api` answers with. Asks no cluster."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

_OUT_OF_MEMORY = "OOMKilled"
"""The reason of a container's end if it was killed for want of memory."""

_FAILURES = frozenset({"BackOff", "Failed", "FailedCreate"})
"""The reasons of the events by which a node or a controller gives up for the moment."""

_REPEATED = frozenset({"FailedAttachVolume", "FailedCreatePodSandBox", "FailedMount"})
"""Those of attempts that are repeated, and often succeed the second or third time."""

_STUBBORN = 6
"""Attempts after which one of these is believed: half a minute, at Kubernetes' intervals."""

_PRODUCTS = ("nvidia.com/gpu.product", "aliyun.accelerator/nvidia_name", "cloud.google.com/gke-accelerator")
"""Labels of nodes that name the kind of their GPUs."""


def gpus_of_node(node: Any) -> dict[str, Any]:
    """A node with the number and the kind of its GPUs."""
    labels = node.metadata.labels or {}
    return {
        "name": node.metadata.name,
        "status": "Ready" if ready(node) else "NotReady",
        "product": next((labels[name] for name in _PRODUCTS if name in labels), ""),
        "total": _gpus(node.status.allocatable),
    }


def ready(node: Any) -> bool:
    """Whether a node takes part in the cluster."""
    return any(each.type == "Ready" and each.status == "True" for each in node.status.conditions or ())


def schedulable(node: Any) -> bool:
    """Whether a node takes new pods."""
    return ready(node) and not (node.spec and node.spec.unschedulable)


def offer(node: Any) -> dict[str, Any]:
    """The capacity of a node, what it repels, and the images on it."""
    taints = (node.spec.taints if node.spec else None) or ()
    return {
        "name": node.metadata.name,
        "labels": node.metadata.labels or {},
        "taints": [(each.key, each.value or "", each.effect) for each in taints],
        "allocatable": node.status.allocatable or {},
        "images": [name for each in node.status.images or () for name in each.names or ()],
    }


def gpus_of_pod(pod: Any) -> dict[str, Any]:
    """A pod with the number of GPUs that it requests; its node is "" until it has one."""
    return {
        "name": pod.metadata.name,
        "namespace": pod.metadata.namespace,
        "node": pod.spec.node_name or "",
        "pipeline": pipeline_of(pod),
        "gpus": max(
            sum(_wanted(pod.spec.containers)),
            max(_wanted(pod.spec.init_containers or ()), default=0),  # these run before the others
        ),
    }


def requests_of(pod: Any) -> dict[str, Any]:
    """A pod on a node with the resources of its containers, in the form of a specification of pods."""
    return {
        "node": pod.spec.node_name,
        "pipeline": pipeline_of(pod),
        "containers": [_resources(each) for each in pod.spec.containers],
        "initContainers": [_resources(each) for each in pod.spec.init_containers or ()],
    }


def _resources(container: Any) -> dict[str, Any]:
    given = container.resources
    return {"resources": {"requests": given.requests or {}, "limits": given.limits or {}} if given else {}}


def _wanted(containers: Iterable[Any]) -> list[int]:
    return [_gpus(each.resources.limits if each.resources else None) for each in containers]


def _gpus(quantities: Mapping[str, str] | None) -> int:
    """The number of GPUs, or slices of GPUs, among some resources."""
    return sum(
        int(quantity)
        for name, quantity in (quantities or {}).items()
        if name.endswith("/gpu") or name.startswith("nvidia.com/mig-")
    )


def pipeline_of(thing: Any) -> str:
    """The pipeline of a worker, as project/name; "" for any other pod."""
    labels = thing.metadata.labels or {}
    name = labels.get("pipelineName", "")
    return f"{labels.get('pipelineProject', 'default')}/{name}" if name else ""


def lacks_workers(controller: Any) -> bool:
    """Whether events of a controller are current: Kubernetes keeps them for an hour."""
    return (controller.status.ready_replicas or 0) < (controller.spec.replicas or 0)


def healthy(pod: Any) -> bool:
    """Whether all containers of a pod run."""
    return pod.status.phase == "Running" and all(each.ready for each in pod.status.container_statuses or ())


def is_failure(event: Any) -> bool:
    """Whether a warning says that a worker cannot start. Most warnings of a starting pod pass: a probe that comes too
    early, a volume whose secret the node has not read yet, the limits of a resolver. A pod without a node has a
    condition that says the same."""
    if event.reason in _FAILURES:
        return True
    repeated = event.count or (event.series.count if event.series else 0) or 0
    return event.reason in _REPEATED and repeated >= _STUBBORN


def waiting(pod: Any) -> Iterator[str]:
    """The reasons, in Kubernetes' words, for which a pod waits."""
    for each in pod.status.conditions or ():
        if each.type == "PodScheduled" and each.status == "False" and each.message:
            yield f"{each.reason}: {each.message.strip()}"
    for each in (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ())):
        waiting = each.state.waiting if each.state else None
        if waiting is not None and waiting.message:
            yield f"{waiting.reason}: {waiting.message.strip()}"
        ended = each.last_state.terminated if each.last_state else None
        if ended is not None and ended.reason == _OUT_OF_MEMORY:
            yield f"{_OUT_OF_MEMORY}: exit status {ended.exit_code}"


def distinct(reasons: Sequence[str]) -> list[str]:
    """The reasons, given as "reason: message", without those that others repeat in full or name only by its code, and
    without a pause between attempts if a cause is known, too."""
    first = list({_message(each): each for each in reversed(reasons)}.values())[::-1]
    kept = [each for each in first if not any(_message(each) in other for other in first if other != each)]
    causes = [each for each in kept if not _message(each).startswith("Error: ")] or kept
    return [each for each in causes if "BackOff" not in each.partition(":")[0]] or causes


def _message(reason: str) -> str:
    return reason.partition(": ")[2]
