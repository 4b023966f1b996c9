"""The room on a cluster for all workers together: the permanent ones, which keep their place between jobs, and beside
them one worker at a time of each pipeline that autoscales.

Places pods by first fit, the largest first, over what other pods leave of the nodes. Asks no cluster.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pipelines.checks import pods
from pipelines.cluster.capacity import (
    ClusterNode,
    PodRequests,
    format_amounts,
    is_virtual,
    node_capacity,
    pod_requests,
    repelled_by,
)
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.findings import Finding, Flaw
from stages.datum.text_format import counted

_POD = {"pods": Fraction(1)}
"""A node takes a limited number of pods."""

_FIX = 'lower resource_requests or parallelism_spec, set "autoscaling": true where it is not, or add nodes'


@dataclass(slots=True)
class _Space:
    """A node and the amounts that are left of it; resources that it does not limit are absent."""

    node: ClusterNode
    left: dict[str, Fraction]

    def has(self, asked: Mapping[str, Fraction]) -> bool:
        if is_virtual(self.node):
            return True
        return all(self.left.get(name, Fraction(name == "pods")) >= amount for name, amount in asked.items())

    def take(self, asked: Mapping[str, Fraction]) -> None:
        for name, amount in asked.items():
            if name in self.left:
                self.left[name] -= amount


@dataclass(frozen=True, slots=True)
class _Worker:
    """A worker's pod: its requests, and the nodes that suit it."""

    draft: SpecDraft
    pod: Mapping[str, Any]
    asked: Mapping[str, Fraction]

    def suits(self, node: ClusterNode) -> bool:
        selector: Mapping[str, str] = self.pod.get("nodeSelector") or {}
        return selector.items() <= node.labels.items() and not repelled_by(node, self.pod.get("tolerations") or ())


def workers(draft: SpecDraft) -> int:
    """The number of workers of a pipeline."""
    return int(draft.number("parallelism_spec", "constant")) or 1


def check(nodes: Sequence[ClusterNode], held: Sequence[PodRequests], drafts: Sequence[SpecDraft]) -> Iterator[Finding]:
    """The flaws of pipelines whose workers find no room; `held` is what the pods of others have. Pipelines whose worker
    would not fit on an empty node are left out."""
    empty = [_Space(node, node_capacity(node)) for node in nodes]
    found = [_worker(draft) for draft in drafts]
    found = [each for each in found if any(each.suits(space.node) and space.has(each.asked) for space in empty)]
    permanent = [each for each in found if not each.draft.get("autoscaling")]
    spaces = [_Space(node, _left(node, held)) for node in nodes]
    homeless = _without_place(spaces, permanent)
    if homeless:
        before = [_Space(node, _left(node, held)) for node in nodes if any(each.suits(node) for each in permanent)]
        flaw = _together(permanent, homeless, _left_over(before, permanent))
        yield from (each.draft.finding(flaw) for each in permanent)
    for each in found:
        if each.draft.get("autoscaling") and not any(each.suits(one.node) and one.has(each.asked) for one in spaces):
            suited = [space for space in spaces if each.suits(space.node)]
            why = (
                f"a worker requests {format_amounts(_without_pods(each.asked))}, "
                f"next to other pods and the permanent workers {_left_over(suited, [each])}: its jobs would wait"
            )
            yield each.draft.finding(Flaw.warning("room", ("resource_requests",), why, _FIX))


def _worker(draft: SpecDraft) -> _Worker:
    pod = pods.patched_pod(draft)
    return _Worker(draft, pod, pod_requests(pod) | _POD)


def _left(node: ClusterNode, held: Sequence[PodRequests]) -> dict[str, Fraction]:
    left = node_capacity(node)
    for each in held:
        if each.node == node.name:
            for name, amount in {**each.requests, **_POD}.items():
                if name in left:
                    left[name] = max(left[name] - amount, Fraction(0))
    return left


def _without_place(spaces: Sequence[_Space], permanent: Sequence[_Worker]) -> dict[str, int]:
    """Places all workers, and returns the number of those without a place by pipeline."""
    homeless: dict[str, int] = {}
    whole: dict[str, Fraction] = {}
    for each in spaces:
        for name, amount in each.left.items():
            whole[name] = whole.get(name, Fraction(0)) + amount

    def share(worker: _Worker) -> Fraction:
        return max(
            (amount / whole[name] for name, amount in worker.asked.items() if whole.get(name)), default=Fraction(0)
        )

    for worker in sorted(permanent, key=share, reverse=True):
        for _ in range(workers(worker.draft)):
            space = next((one for one in spaces if worker.suits(one.node) and one.has(worker.asked)), None)
            if space is None:
                homeless[worker.draft.name] = homeless.get(worker.draft.name, 0) + 1
            else:
                space.take(worker.asked)
    return homeless


def _together(permanent: Sequence[_Worker], homeless: Mapping[str, int], before: str) -> Flaw:
    total: dict[str, Fraction] = {}
    for each in permanent:
        for name, amount in _without_pods(each.asked).items():
            total[name] = total.get(name, Fraction(0)) + amount * workers(each.draft)
    number = sum(workers(each.draft) for each in permanent)
    places = ", ".join(f"{count} of {name}" for name, count in homeless.items())
    why = (
        f"{counted(number, 'permanent worker requests', 'permanent workers request')} {format_amounts(total)} "
        "together, next to other pods "
        f"{before}: no room for {places}"
    )
    return Flaw.warning("room", ("resource_requests",), why, _FIX)


def _left_over(spaces: Sequence[_Space], found: Sequence[_Worker]) -> str:
    """The amounts left of the resources that workers request, in all and on the node with the most."""
    names = sorted({name for each in found for name in _without_pods(each.asked)})
    lefts = [{name: space.left.get(name, Fraction(0)) for name in names} for space in spaces]
    total = {name: sum((left[name] for left in lefts), Fraction(0)) for name in names}
    if len(spaces) == 1:
        return f"{spaces[0].node.name} has {format_amounts(total)} left"
    most = {name: max(left[name] for left in lefts) for name in names}
    return f"{len(spaces)} nodes have {format_amounts(total)} left, and none of them more than {format_amounts(most)}"


def _without_pods(asked: Mapping[str, Fraction]) -> dict[str, Fraction]:
    return {name: amount for name, amount in asked.items() if name not in _POD}
