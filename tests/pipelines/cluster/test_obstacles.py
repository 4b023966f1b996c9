"""The obstacles in a cluster that deploy reports before it sends anything."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pipelines.cluster import obstacles
from pipelines.cluster.capacity import ClusterNode, ResourceQuota
from pipelines.cluster.obstacles import ClusterState
from pipelines.cluster.registries import ImageAvailability
from pipelines.specifications import drafts, overlays, pipeline_specs
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.findings import Finding, FlawLevel
from speclang.field_paths import dotted
from tests.pipelines.stand_ins import SpecFiles

TAINT = ("nvidia.com/gpu", "present", "NoSchedule")
CPU = ClusterNode("cpu-1", {}, (), {"cpu": "8", "memory": "32Gi", "pods": "110"})
T4 = ClusterNode(
    "gpu-1",
    {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"},
    [TAINT],
    {"cpu": "8", "memory": "30Gi", "nvidia.com/gpu": "1"},
)
VIRTUAL = ClusterNode(
    "virtual-kubelet-cn-a",
    {"type": "virtual-kubelet"},
    [("virtual-kubelet.io/provider", "alibabacloud", "NoSchedule")],
    {},
)


@pytest.fixture
def draft(tmp_path: Path) -> Callable[..., SpecDraft]:
    """Makes a draft of a specification with these fields."""
    return SpecFiles(tmp_path).draft


def ours(*names: str) -> list[SpecDraft]:
    on_top = [overlays.load(name, {"REGISTRY": "r.io/t"}) for name in names]
    return overlays.apply(on_top, drafts.find(sorted(pipeline_specs.SHIPPED_SPECS.glob("*.json"))))  # the usual ones


def told(cluster: ClusterState, found: Sequence[SpecDraft], new: Sequence[str] | None = None) -> list[Finding]:
    return list(
        obstacles.check(cluster, found, frozenset(each.name for each in found) if new is None else frozenset(new))
    )


def cluster(
    nodes: Sequence[ClusterNode] = (CPU, T4),
    quotas: Sequence[ResourceQuota] = (),
    answer: ImageAvailability = ImageAvailability.THERE,
) -> ClusterState:
    return ClusterState(nodes, quotas, lambda _: answer)


GPU_PIPELINES = ["features-queries", "features", "index", "search"]


def test_a_suitable_cluster_has_no_obstacles() -> None:
    assert not told(cluster(), ours("gke"))
    assert not told(cluster([VIRTUAL]), ours("eci"))


@pytest.mark.parametrize(
    ("nodes", "names", "field", "said"),
    [
        ([CPU], [], "resource_limits.gpu", "no node of the cluster has nvidia.com/gpu 1: its workers would wait"),
        ([CPU, T4], [], "tolerations", "gpu-1 repel it by the taint nvidia.com/gpu=present:NoSchedule"),
        (
            [CPU, T4],
            ["eks"],
            "scheduling_spec.node_selector",
            "no node has the label node.kubernetes.io/instance-type=g4dn",
        ),
        ([CPU, T4], ["eci"], "scheduling_spec.node_selector", "no node has the label type=virtual-kubelet"),
    ],
)
def test_missing_and_tainted_nodes(nodes: list[ClusterNode], names: list[str], field: str, said: str) -> None:
    found = told(cluster(nodes), ours(*names))
    assert {each.pipeline for each in found} >= set(GPU_PIPELINES)
    for each in found:
        assert each.flaw.level == FlawLevel.WARNING
        assert dotted(each.flaw.field) == field
        assert said in each.flaw.why


def test_nodes_that_are_too_small(draft: Any) -> None:
    large = draft(resource_requests={"cpu": 16, "memory": "1Gi"})
    (finding,) = told(cluster(), [large])
    assert "no node of the cluster has cpu 16, memory" in finding.flaw.why
    assert dotted(finding.flaw.field) == "resource_requests"
    assert not told(cluster(), [draft(resource_requests={"cpu": 8, "memory": "1Gi"})])


@pytest.mark.parametrize(
    ("image", "secrets", "answer", "level", "said"),
    [
        ("shell:1", [], ImageAvailability.DENIED, FlawLevel.ERROR, "Docker Hub has no public image shell:1"),
        ("r.io/t/shell:1", [], ImageAvailability.MISSING, FlawLevel.ERROR, "r.io has no public image r.io/t/shell:1"),
        (
            "r.io/t/shell:1",
            ["mine"],
            ImageAvailability.MISSING,
            FlawLevel.ERROR,
            "r.io has no public image r.io/t/shell:1",
        ),
        ("r.io/t/shell:1", [], ImageAvailability.DENIED, FlawLevel.WARNING, "requires a login for"),
        ("r.io/t/shell:1", ["mine"], ImageAvailability.DENIED, FlawLevel.NOTE, "unchecked: r.io did not answer"),
        ("r.io/t/shell:1", [], ImageAvailability.SILENT, FlawLevel.NOTE, "unchecked: r.io did not answer"),
    ],
)
def test_missing_images(
    draft: Any, image: str, secrets: list[str], answer: ImageAvailability, level: FlawLevel, said: str
) -> None:
    one = draft(transform={"image": image, "cmd": ["sh"], "image_pull_secrets": secrets})
    (finding,) = told(cluster(answer=answer), [one])
    assert finding.flaw.level == level
    assert said in finding.flaw.why
    name = image if "/" in image else f"docker.io/library/{image}"
    has = ClusterNode("n", {}, (), CPU.allocatable, frozenset([name]))
    assert not told(cluster([has], answer=answer), [one])


def test_quotas_that_do_not_suffice() -> None:
    none = ResourceQuota("team", {"requests.nvidia.com/gpu": "0"}, {})
    found = told(cluster(quotas=[none]), ours("gke"))
    assert [each.pipeline for each in found] == GPU_PIPELINES
    assert {each.flaw.level for each in found} == {FlawLevel.ERROR}
    assert found[0].flaw.why == (
        "the quota team allows 0 of requests.nvidia.com/gpu in all, and one worker needs 1: it would never be created"
    )
    two = ResourceQuota(
        "team", {"requests.nvidia.com/gpu": "2", "requests.memory": "1Ti"}, {"requests.nvidia.com/gpu": "1"}
    )
    found = told(cluster(quotas=[two]), ours("gke"))
    assert {each.flaw.level for each in found} == {FlawLevel.WARNING}
    assert "leaves 1 of 2 requests.nvidia.com/gpu, and all workers together need 4" in found[0].flaw.why
    assert not told(cluster(quotas=[two]), ours("gke"), new=["index"])
    pods = ResourceQuota("pods", {"pods": "6", "limits.cpu": "1"}, {})
    assert {each.pipeline for each in told(cluster(quotas=[pods]), ours("gke"))} == {each.name for each in ours()}


def test_an_old_pachyderm_is_too_old() -> None:
    assert not list(obstacles.check_version((2, 7)))
    assert not list(obstacles.check_version((2, 12)))
    for old, level in (((2, 6), FlawLevel.WARNING), ((2, 4), FlawLevel.ERROR), ((1, 13), FlawLevel.ERROR)):
        (flaw,) = obstacles.check_version(old)
        assert flaw.level == level
        assert f"Pachyderm {old[0]}.{old[1]}" in flaw.why


def test_more_pipelines_than_the_community_edition_takes() -> None:
    names = [f"p{number}" for number in range(20)]
    assert not list(obstacles.check_number({*names[:15]}, {"new"}))
    assert not list(obstacles.check_number({*names}, set()))  # an update is never refused
    assert not list(obstacles.check_number({*names[:15]}, {"new", *names[:5]}))  # names of other projects' pipelines
    (flaw,) = obstacles.check_number({*names[:12]}, {*names[15:]})
    assert flaw.level == FlawLevel.ERROR
    assert "has pipelines of 12 names, in all projects, and these are 5 more" in flaw.why
    assert list(obstacles.check_number({*names[:16]}, {names[0]}))
