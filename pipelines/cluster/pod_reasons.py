"""Kubernetes' reasons for which the pod of a worker does not run, in plain words with what to do. Asks no cluster."""

import re

_UNSCHEDULED = re.compile(r"0/(\d+) nodes are available: (.*)", re.DOTALL)
_INSUFFICIENT = re.compile(r"Insufficient ([\w./-]+\w)")
_TAINT = re.compile(r"taint \{([^}:]+)")
_NAMES = {"nvidia.com/gpu": "GPUs", "cpu": "CPU", "ephemeral-storage": "disk space", "pods": "room for another pod"}
_PULLING = re.compile(r'Pulling: (?:Pulling image )?"?([^"\s]+)"?')
_UNPULLED = re.compile(r"(ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull): (.*)", re.DOTALL)
_OUT_OF_MEMORY = "OOMKilled"


def plain_words(reason: str) -> str:
    """A reason in plain words; one that is not known stays as it is."""
    reason = " ".join(reason.split())
    unscheduled = _UNSCHEDULED.search(reason)
    if unscheduled is not None:
        return _unscheduled(unscheduled[2])
    if (pulling := _PULLING.search(reason)) is not None:
        return f"its worker's node is pulling the image {pulling[1]}"
    if (unpulled := _UNPULLED.search(reason)) is not None:
        return f"the image of its worker cannot be pulled ({unpulled[2]}): see `lookalike check`"
    if _OUT_OF_MEMORY in reason:
        return "its worker was killed for want of memory and starts again: raise resource_requests.memory"
    return reason


def _unscheduled(causes: str) -> str:
    """The causes for which no node takes a pod."""
    causes = causes.partition(" preemption: ")[0]
    short = list(dict.fromkeys(_NAMES.get(each, each) for each in _INSUFFICIENT.findall(causes)))
    if short:
        listed = " and ".join((", ".join(short[:-1]), short[-1])) if len(short) > 1 else short[0]
        return (
            f"waits for a node with enough free {listed} for its worker: it starts when other work ends; or lower "
            "resource_requests, or add a node"
        )
    taints = ", ".join(dict.fromkeys(_TAINT.findall(causes)))
    if taints:
        return f"every node repels its worker by the taint {taints}: tolerate it with an overlay, see `lookalike check`"
    if "affinity" in causes or "selector" in causes:
        return "no node has the labels that its worker asks for: correct scheduling_spec, see `lookalike check`"
    return f"no node takes its worker: {causes}"
