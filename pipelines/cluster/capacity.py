"""The amounts of resources that pods request and that nodes and quotas give, and the taints of nodes. Asks no
cluster."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from speclang import quantities

_VIRTUAL = ("type", "virtual-kubelet")
"""The label of virtual nodes, whose instances are made to fit each pod."""

_REPELLING = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A schedulable node: its labels, its taints (key, value, effect), its allocatable resources, and the images on
    it."""

    name: str
    labels: Mapping[str, str]
    taints: Sequence[Sequence[str]]
    allocatable: Mapping[str, str]
    images: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class ResourceQuota:
    """A ResourceQuota: the limits of a namespace by resource, and the amounts in use."""

    name: str
    hard: Mapping[str, str]
    used: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PodRequests:
    """The requests of a pod on a node."""

    node: str
    requests: Mapping[str, Fraction]


def pod_requests(pod: Mapping[str, Any]) -> dict[str, Fraction]:
    """The requests of a pod, by resource."""
    return {name: amount for name, amount in sums(pod, "requests").items() if amount}


def sums(pod: Mapping[str, Any], kind: str) -> dict[str, Fraction]:
    """The sum of the requests or limits of a pod's containers; a missing request is its limit. An init container's
    amount is not added, but counts if it is larger than the sum."""
    total: dict[str, Fraction] = {}
    for container in pod.get("containers") or ():
        for name, amount in _amounts(container, kind).items():
            total[name] = total.get(name, Fraction(0)) + amount
    for container in pod.get("initContainers") or ():
        for name, amount in _amounts(container, kind).items():
            total[name] = max(total.get(name, Fraction(0)), amount)
    return total


def is_virtual(node: ClusterNode) -> bool:
    """Whether instances are made to fit each pod, so that the node is never full."""
    return node.labels.get(_VIRTUAL[0]) == _VIRTUAL[1]


def node_capacity(node: ClusterNode) -> dict[str, Fraction]:
    """The amounts that an empty node has, by resource."""
    return {name: quantities.parse(text) or Fraction(0) for name, text in node.allocatable.items()}


def has_capacity(node: ClusterNode, asked: Mapping[str, Fraction]) -> bool:
    """Whether an empty node has enough."""
    has = node_capacity(node)
    return is_virtual(node) or all(has.get(name, 0) >= amount for name, amount in asked.items())


def format_amounts(each: Mapping[str, Fraction]) -> str:
    """Amounts by resource, for people."""
    return ", ".join(f"{name} {format_amount(amount)}" for name, amount in each.items())


def format_amount(amount: Fraction) -> str:
    """An amount for people: bytes in Gi or Mi."""
    for power, suffix in ((30, "Gi"), (20, "Mi")):
        if amount >= 1 << power:
            return f"{float(amount / (1 << power)):.4g}{suffix}"
    return f"{float(amount):.4g}"


def repelled_by(node: ClusterNode, tolerations: Sequence[Mapping[str, Any]]) -> list[Sequence[str]]:
    """The taints of a node that repel a pod with these tolerations."""
    kept = [taint for taint in node.taints if taint[2] in _REPELLING]
    return [taint for taint in kept if not any(_covers(each, taint) for each in tolerations)]


def _amounts(container: Any, kind: str) -> dict[str, Fraction]:
    resources = container.get("resources") if isinstance(container, Mapping) else None
    given = resources if isinstance(resources, Mapping) else {}
    limits = given.get("limits") or {}
    found = limits if kind == "limits" else {**limits, **(given.get("requests") or {})}
    return {str(name): amount for name, text in found.items() if (amount := quantities.parse(str(text))) is not None}


def _covers(toleration: Mapping[str, Any], taint: Sequence[str]) -> bool:
    key, value, effect = taint
    if toleration.get("effect") not in (None, "", effect):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", key)
    return (toleration.get("key"), toleration.get("value") or "") == (key, value)
