"""Obstacles for specifications on the cluster to which they are about to be deployed: nodes and GPUs that are not
there, images that cannot be pulled, quotas that do not suffice, a Pachyderm that is too old.

Decides on facts that come from outside; asks nobody.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pipelines.checks import pods
from pipelines.checks.graph import COMMUNITY_PIPELINES
from pipelines.cluster import room
from pipelines.cluster.capacity import Held, Node, Quota, amounts, gives, repelled_by, shown, sums, wanted
from pipelines.cluster.registries import Answer
from pipelines.specifications.drafts import Draft
from pipelines.specifications.findings import Finding, Flaw, Level, Place
from pipelines.specifications.images import Image
from speclang import quantities
from speclang.fields import Field

OLDEST = (2, 5)
"""The first Pachyderm with datum batching, by which the stages are run, and with projects."""

SPOKEN = (2, 7)
"""The Pachyderm whose messages lookalike sends."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Nodes, the quotas of the namespace of Pachyderm's workers, and the registries' answers about images. `held` are
    the resources of all pods but the workers that the deployment replaces or that autoscale, None if unknown."""

    nodes: Sequence[Node]
    quotas: Sequence[Quota]
    ask: Callable[[Image], Answer]
    held: Sequence[Held] | None = ()


def check_version(version: tuple[int, int]) -> Iterator[Flaw]:
    """The flaws that an old server causes: it drops the fields that it does not know."""
    said = f"the server is Pachyderm {version[0]}.{version[1]}"
    fix = f"upgrade it to {SPOKEN[0]}.{SPOKEN[1]} or newer"
    if version < OLDEST:
        why = f"{said}: datum batching, which the stages need, came with {OLDEST[0]}.{OLDEST[1]}: every datum fails"
        yield Flaw(Level.ERROR, "version", (), why, fix)
    elif version < SPOKEN:
        why = f"{said}: it silently drops the fields that {SPOKEN[0]}.{SPOKEN[1]} added to specifications"
        yield Flaw(Level.WARNING, "version", (), why, fix)


def check_number(there: int, new: int) -> Iterator[Flaw]:
    """The flaw of more new pipelines than a server without an enterprise key takes, beside those that it has."""
    if new and there + new > COMMUNITY_PIPELINES:
        why = (
            f"the server has {there} pipelines, in all projects, and these are {new} more: without an enterprise key "
            f"Pachyderm refuses more than {COMMUNITY_PIPELINES}"
        )
        fix = "delete some: `lookalike duplicates --off`, `lookalike evaluate --off` and `lookalike serve --off` do"
        yield Flaw(Level.ERROR, "pipelines", (), why, fix)


def check(cluster: Cluster, drafts: Sequence[Draft], new: frozenset[str]) -> Iterator[Finding]:
    """The obstacles that keep workers of pipelines from starting. `new` names those that are not on the server yet."""
    for draft in drafts:
        for flaw in (*_check_image(cluster, draft), *_check_nodes(cluster, draft)):
            yield draft.finding(flaw)
    if cluster.held is not None:
        yield from room.check(cluster.nodes, cluster.held, drafts)
    else:
        why = "unchecked: whether all workers find room together, since the pods of other namespaces may not be listed"
        yield Finding(Flaw(Level.NOTE, "room", (), why), "", Place(None))
    yield from _check_quotas(cluster, [draft for draft in drafts if draft.name in new])


def _check_image(cluster: Cluster, draft: Draft) -> Iterator[Flaw]:
    image = Image.parse(draft.get("transform", "image", default=""))
    if image is None or any(str(image) in _spellings(name) for node in cluster.nodes for name in node.images):
        return
    answer = cluster.ask(image)
    at, where = ("transform", "image"), image.registry or "Docker Hub"
    secret = bool(draft.get("transform", "image_pull_secrets"))
    fate = "its workers would wait in ImagePullBackOff"
    if answer is Answer.MISSING or (answer is Answer.DENIED and not image.registry and not secret):
        why = f"{where} has no public image {image}, and no node has it: {fate}"
        fix = "push it (`make images PUSH=…`) and name the registry: REGISTRY=… with --overlay registry"
        yield Flaw(Level.ERROR, "image", at, why, fix)
    elif answer is Answer.DENIED and not secret:
        why = f"{where} requires a login for {image}, and the pipeline names no secret: {fate}"
        fix = "create a secret and name it: PULL_SECRET=… with --overlay pull-secret"
        yield Flaw(Level.WARNING, "image", at, why, fix)
    elif answer is not Answer.THERE:
        yield Flaw(Level.NOTE, "image", at, f"unchecked: {where} did not answer whether it has {image}")


def _spellings(name: str) -> tuple[str, ...]:
    """The names by which a specification may refer to an image on a node: nodes spell out Docker Hub."""
    return name, name.removeprefix("docker.io/"), name.removeprefix("docker.io/library/")


def _check_nodes(cluster: Cluster, draft: Draft) -> Iterator[Flaw]:
    pod = pods.finished(draft)
    needs = wanted(pod)
    gpus = {name: amount for name, amount in needs.items() if "/" in name}
    selector: Mapping[str, str] = pod.get("nodeSelector") or {}
    tolerations = pod.get("tolerations") or ()
    able = [node for node in cluster.nodes if gives(node, needs)]
    suited = [node for node in able if selector.items() <= node.labels.items()]
    if not all(repelled_by(node, tolerations) for node in suited):
        return
    asked = amounts(gpus or needs)
    labels = ", ".join(map("=".join, selector.items()))
    field: Field = ("resource_limits", "gpu") if gpus else ("resource_requests",)
    if not able:
        why, fix = f"no node of the cluster has {asked}", "add larger nodes, or a pool of GPU nodes"
    elif not suited:
        labelled = any(selector.items() <= node.labels.items() for node in cluster.nodes)
        why = f"no node with the label {labels} has {asked}" if labelled else f"no node has the label {labels}"
        field, fix = ("scheduling_spec", "node_selector"), "correct the variable of the overlay, or label nodes"
    else:
        key, value, effect = repelled_by(suited[0], tolerations)[0]
        field, why = ("tolerations",), f"{_nodes(suited)} repel it by the taint {key}={value}:{effect}"
        fix = "tolerate it: the overlays gke and eks do that for nvidia.com/gpu, eci for virtual nodes"
    fate = "its workers would wait, unschedulable, until such a node joins"
    yield Flaw(Level.WARNING, "nodes", field, f"{why}: {fate}", fix)


def _check_quotas(cluster: Cluster, drafts: Sequence[Draft]) -> Iterator[Finding]:
    for quota in cluster.quotas:
        for name, hard in quota.hard.items():
            limit, used = (
                quantities.parse(hard) or Fraction(0),
                quantities.parse(quota.used.get(name, "0")) or Fraction(0),
            )
            needs = [(draft, need) for draft in drafts if (need := _of_quota(draft, name))]
            alone = [(draft, need) for draft, need in needs if need > limit]
            for draft, need in alone:
                why = (
                    f"the quota {quota.name} allows {shown(limit)} of {name} in all, and one worker needs "
                    f"{shown(need)}: it would never be created"
                )
                flaw = Flaw(Level.ERROR, "quota", _field(name), why, "request less, or have the quota raised")
                yield draft.finding(flaw)
            total = sum((need * room.workers(draft) for draft, need in needs), Fraction(0))
            if not alone and used + total > limit:
                why = (
                    f"the quota {quota.name} leaves {shown(max(limit - used, Fraction(0)))} of {shown(limit)} "
                    f"{name}, and all workers together need {shown(total)}: some would wait for others"
                )
                flaw = Flaw(Level.WARNING, "quota", _field(name), why, "have the quota raised")
                yield from (draft.finding(flaw) for draft, _ in needs)


def _of_quota(draft: Draft, name: str) -> Fraction:
    """The amount of a quota's resource that one worker takes."""
    if name in ("pods", "count/pods"):
        return Fraction(1)
    kind, _, resource = name.partition(".")
    if kind not in ("requests", "limits"):
        kind, resource = "requests", name
    return sums(pods.finished(draft), kind).get(resource, Fraction(0))


def _field(name: str) -> Field:
    """The field of a specification that sets a quota's resource."""
    if name in ("pods", "count/pods"):
        return ("parallelism_spec",)
    return ("resource_limits" if name.startswith("limits.") or "/" in name else "resource_requests",)


def _nodes(nodes: Sequence[Node]) -> str:
    """Some nodes by name."""
    more = f" and {len(nodes) - 3} more" if len(nodes) > 3 else ""
    return ", ".join(node.name for node in nodes[:3]) + more
