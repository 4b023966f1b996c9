"""Obstacles for specifications on the cluster to which they are about to be deployed: nodes and GPUs that are not
there, images that cannot be pulled, quotas that do not suffice, a Pachyderm that is too old.

Decides on facts that come from outside; asks nobody.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction

from pipelines.checks import pods
from pipelines.checks.spec_graph import COMMUNITY_PIPELINES
from pipelines.cluster import worker_placement
from pipelines.cluster.capacity import (
    ClusterNode,
    PodRequests,
    ResourceQuota,
    format_amount,
    format_amounts,
    has_capacity,
    pod_requests,
    repelled_by,
    sums,
)
from pipelines.cluster.registries import ImageAvailability
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.findings import Finding, Flaw, FlawPlace
from pipelines.specifications.image_reference import ImageReference
from speclang import quantities
from speclang.field_paths import FieldPath
from stages.datum.text_format import first_of

OLDEST = (2, 5)
"""The first Pachyderm with datum batching, by which the stages are run, and with projects."""

SPOKEN = (2, 7)
"""The Pachyderm whose messages lookalike sends."""

UNLIMITED = (2, 12)
"""The first Pachyderm that takes any number of pipelines without an enterprise key."""

_MOST_NODES = 3
"""Most nodes that are named."""


@dataclass(frozen=True, slots=True)
class ClusterState:
    """Nodes, the quotas of the namespace of Pachyderm's workers, and the registries' answers about images. `held` are
    the resources of all pods but the workers that the deployment replaces or that autoscale, None if unknown."""

    nodes: Sequence[ClusterNode]
    quotas: Sequence[ResourceQuota]
    ask: Callable[[ImageReference], ImageAvailability]
    held: Sequence[PodRequests] | None = ()


def check_version(version: tuple[int, int]) -> Iterator[Flaw]:
    """The flaws that an old server causes: it drops the fields that it does not know."""
    said = f"the server is Pachyderm {version[0]}.{version[1]}"
    fix = f"upgrade it to {SPOKEN[0]}.{SPOKEN[1]} or newer"
    if version < OLDEST:
        why = f"{said}: datum batching, which the stages need, came with {OLDEST[0]}.{OLDEST[1]}: every datum fails"
        yield Flaw.error("version", (), why, fix)
    elif version < SPOKEN:
        why = f"{said}: it silently drops the fields that {SPOKEN[0]}.{SPOKEN[1]} added to specifications"
        yield Flaw.warning("version", (), why, fix)


def check_number(there: Set[str], new: Set[str]) -> Iterator[Flaw]:
    """The flaw of more new pipelines than a server without an enterprise key takes, beside those that it has. there:
    the names of all projects' pipelines. new: those that this project does not have. Pachyderm counts names, and
    refuses a new pipeline where there are as many, whatever its own name."""
    more = len(new - there)
    if new and (len(there) + more > COMMUNITY_PIPELINES or len(there) >= COMMUNITY_PIPELINES):
        why = (
            f"the server has pipelines of {len(there)} names, in all projects, and these are {len(new)} more: without "
            f"an enterprise key Pachyderm allows {COMMUNITY_PIPELINES}"
        )
        fix = "delete some: `lookalike duplicates --off`, `lookalike evaluate --off` and `lookalike serve --off` do"
        yield Flaw.error("pipelines", (), why, fix)


def check(cluster: ClusterState, drafts: Sequence[SpecDraft], new: frozenset[str]) -> Iterator[Finding]:
    """The obstacles that keep workers of pipelines from starting. `new` names those that are not on the server yet."""
    for draft in drafts:
        for flaw in (*_check_image(cluster, draft), *_check_nodes(cluster, draft)):
            yield draft.finding(flaw)
    if cluster.held is not None:
        yield from worker_placement.check(cluster.nodes, cluster.held, drafts)
    else:
        why = "not checked: whether all workers fit at once (no permission to list pods in other namespaces)"
        yield Finding(Flaw.note("room", (), why), "", FlawPlace(None))
    yield from _check_quotas(cluster, [draft for draft in drafts if draft.name in new])


def _check_image(cluster: ClusterState, draft: SpecDraft) -> Iterator[Flaw]:
    image = ImageReference.parse(draft.get("transform", "image", default=""))
    if image is None or any(str(image) in _spellings(name) for node in cluster.nodes for name in node.images):
        return
    answer = cluster.ask(image)
    at, where = ("transform", "image"), image.registry or "Docker Hub"
    secret = bool(draft.get("transform", "image_pull_secrets"))
    fate = "its workers would wait in ImagePullBackOff"
    if answer is ImageAvailability.MISSING or (
        answer is ImageAvailability.DENIED and not image.registry and not secret
    ):
        why = f"{where} has no public image {image}, and no node has it: {fate}"
        fix = "push it (`make images PUSH=…`) and name the registry: REGISTRY=… with --overlay registry"
        yield Flaw.error("image", at, why, fix)
    elif answer is ImageAvailability.DENIED and not secret:
        why = f"{where} requires a login for {image}, and the pipeline names no secret: {fate}"
        fix = "create a secret and name it: PULL_SECRET=… with --overlay pull-secret"
        yield Flaw.warning("image", at, why, fix)
    elif answer is not ImageAvailability.THERE:
        yield Flaw.note("image", at, f"unchecked: {where} did not answer whether it has {image}")


def _spellings(name: str) -> tuple[str, ...]:
    """The names by which a specification may refer to an image on a node: nodes spell out Docker Hub."""
    return name, name.removeprefix("docker.io/"), name.removeprefix("docker.io/library/")


def _check_nodes(cluster: ClusterState, draft: SpecDraft) -> Iterator[Flaw]:
    pod = pods.patched_pod(draft)
    needs = pod_requests(pod)
    gpus = {name: amount for name, amount in needs.items() if "/" in name}
    selector: Mapping[str, str] = pod.get("nodeSelector") or {}
    tolerations = pod.get("tolerations") or ()
    able = [node for node in cluster.nodes if has_capacity(node, needs)]
    suited = [node for node in able if selector.items() <= node.labels.items()]
    if not all(repelled_by(node, tolerations) for node in suited):
        return
    asked = format_amounts(gpus or needs)
    labels = ", ".join(map("=".join, selector.items()))
    field: FieldPath = ("resource_limits", "gpu") if gpus else ("resource_requests",)
    if not able:
        why, fix = f"no node of the cluster has {asked}", "add larger nodes, or a pool of GPU nodes"
    elif not suited:
        labelled = any(selector.items() <= node.labels.items() for node in cluster.nodes)
        why = f"no node with the label {labels} has {asked}" if labelled else f"no node has the label {labels}"
        field, fix = ("scheduling_spec", "node_selector"), "correct the variable of the overlay, or label nodes"
    else:
        key, value, effect = repelled_by(suited[0], tolerations)[0]
        nodes = first_of([node.name for node in suited], _MOST_NODES)
        field, why = ("tolerations",), f"{nodes} repel it by the taint {key}={value}:{effect}"
        fix = "tolerate it: the overlays gke and eks do that for nvidia.com/gpu, eci for virtual nodes"
    fate = "its workers would wait, unschedulable, until such a node joins"
    yield Flaw.warning("nodes", field, f"{why}: {fate}", fix)


def _check_quotas(cluster: ClusterState, drafts: Sequence[SpecDraft]) -> Iterator[Finding]:
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
                    f"the quota {quota.name} allows {format_amount(limit)} of {name} in all, and one worker needs "
                    f"{format_amount(need)}: it would never be created"
                )
                flaw = Flaw.error("quota", _field(name), why, "request less, or have the quota raised")
                yield draft.finding(flaw)
            total = sum((need * worker_placement.workers(draft) for draft, need in needs), Fraction(0))
            if not alone and used + total > limit:
                why = (
                    f"the quota {quota.name} leaves {format_amount(max(limit - used, Fraction(0)))} "
                    f"of {format_amount(limit)} {name}, and all workers together need {format_amount(total)}: "
                    "some would wait for others"
                )
                flaw = Flaw.warning("quota", _field(name), why, "have the quota raised")
                yield from (draft.finding(flaw) for draft, _ in needs)


def _of_quota(draft: SpecDraft, name: str) -> Fraction:
    """The amount of a quota's resource that one worker takes."""
    if name in ("pods", "count/pods"):
        return Fraction(1)
    kind, _, resource = name.partition(".")
    if kind not in ("requests", "limits"):
        kind, resource = "requests", name
    return sums(pods.patched_pod(draft), kind).get(resource, Fraction(0))


def _field(name: str) -> FieldPath:
    """The field of a specification that sets a quota's resource."""
    if name in ("pods", "count/pods"):
        return ("parallelism_spec",)
    return ("resource_limits" if name.startswith("limits.") or "/" in name else "resource_requests",)
