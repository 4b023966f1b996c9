"""Whether Kubernetes could give a worker's pod what it asks for: sums over its containers, nodes, taints, quotas.

Reckons with what nodes can give in all: what others hold now comes free again. Asks no cluster.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from speclang import quantities

_VIRTUAL = ("type", "virtual-kubelet")
"""The label of nodes that stand for a cloud's instances, which have what a pod asks for."""

_REPELLING = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Node:
    """A node that takes pods: its labels, its taints (key, value, effect), what it can give in all, and the images that
    it has."""

    name: str
    labels: Mapping[str, str]
    taints: Sequence[tuple[str, str, str]]
    allocatable: Mapping[str, str]
    images: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Quota:
    """A ResourceQuota: how much of what a namespace may have, and has."""

    name: str
    hard: Mapping[str, str]
    used: Mapping[str, str]


def wanted(pod: Mapping[str, Any]) -> dict[str, Fraction]:
    """What a pod must be given to be scheduled, by resource."""
    return {name: amount for name, amount in sums(pod, "requests").items() if amount}


def sums(pod: Mapping[str, Any], kind: str) -> dict[str, Fraction]:
    """What the containers of a pod have together in their requests, which are the limits where there is none, or in
    their limits. An init container's is not added, but it may be more."""
    total: dict[str, Fraction] = {}
    for container in pod.get("containers") or ():
        for name, amount in _amounts(container, kind).items():
            total[name] = total.get(name, Fraction(0)) + amount
    for container in pod.get("initContainers") or ():
        for name, amount in _amounts(container, kind).items():
            total[name] = max(total.get(name, Fraction(0)), amount)
    return total


def gives(node: Node, asked: Mapping[str, Fraction]) -> bool:
    """Whether a node, empty, could give as much."""
    if node.labels.get(_VIRTUAL[0]) == _VIRTUAL[1]:
        return True
    return all((quantities.parse(node.allocatable.get(name, "0")) or 0) >= amount for name, amount in asked.items())


def repelled_by(node: Node, tolerations: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """The taints of a node that keep a pod with these tolerations away."""
    kept = [taint for taint in node.taints if taint[2] in _REPELLING]
    return [taint for taint in kept if not any(_covers(each, taint) for each in tolerations)]


def _amounts(container: Any, kind: str) -> dict[str, Fraction]:
    resources = container.get("resources") if isinstance(container, Mapping) else None
    given = resources if isinstance(resources, Mapping) else {}
    limits = given.get("limits") or {}
    found = limits if kind == "limits" else {**limits, **(given.get("requests") or {})}
    return {str(name): amount for name, text in found.items() if (amount := quantities.parse(str(text))) is not None}


def _covers(toleration: Mapping[str, Any], taint: tuple[str, str, str]) -> bool:
    key, value, effect = taint
    if toleration.get("effect") not in (None, "", effect):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", key)
    return (toleration.get("key"), toleration.get("value") or "") == (key, value)
