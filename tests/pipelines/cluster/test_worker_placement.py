"""The room for all workers of a deployment together, beside the pods of others."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pipelines.cluster import worker_placement
from pipelines.cluster.capacity import ClusterNode, PodRequests
from pipelines.specifications import drafts, optional_specs, overlays, pipeline_specs
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.findings import FlawLevel
from tests.example_counts import examples
from tests.pipelines.stand_ins import SpecFiles

GI = 1 << 30
MakeDraft = Callable[..., SpecDraft]


@pytest.fixture
def draft(tmp_path: Path) -> MakeDraft:
    """Makes a draft of a pipeline with so many workers, each with so many CPUs and so much memory."""
    files = SpecFiles(tmp_path)

    def make(name: str, workers: int, cpu: float, memory: str = "1Gi", **fields: Any) -> SpecDraft:
        requests = {"cpu": cpu, "memory": memory}
        return files.draft(name, parallelism_spec={"constant": workers}, resource_requests=requests, **fields)

    return make


def node(name: str, cpu: str, memory: str = "64Gi", gpus: str = "0", **labels: str) -> ClusterNode:
    return ClusterNode(name, labels, (), {"cpu": cpu, "memory": memory, "pods": "110", "nvidia.com/gpu": gpus})


def held(on: str, cpu: float, **more: int) -> PodRequests:
    return PodRequests(on, {"cpu": Fraction(cpu), **{name: Fraction(amount) for name, amount in more.items()}})


def told(nodes: Sequence[ClusterNode], found: Sequence[SpecDraft], *others: PodRequests) -> dict[str, str]:
    flaws = {each.pipeline: each.flaw for each in worker_placement.check(nodes, others, found)}
    assert {(flaw.level, flaw.field) for flaw in flaws.values()} <= {(FlawLevel.WARNING, ("resource_requests",))}
    return {name: flaw.why for name, flaw in flaws.items()}


def test_permanent_workers_of_all_pipelines_together(draft: MakeDraft) -> None:
    found = [draft("small", 4, 1), draft("large", 2, 3)]
    assert not told([node("a", "10")], found)
    expected = (
        "6 permanent workers request cpu 10, memory 6.358Gi together, next to other pods a has "
        "cpu 8, memory 64Gi left: no room for 2 of small"
    )
    assert told([node("a", "10")], found, held("a", 2), held("b", 9)) == {"small": expected, "large": expected}


def test_nodes_are_filled_one_by_one(draft: MakeDraft) -> None:
    found = [draft("large", 2, 3)]
    assert not told([node("a", "4"), node("b", "4")], found)
    assert told([node("a", "2"), node("b", "3"), node("c", "2")], found) == {
        "large": "2 permanent workers request cpu 6, memory 2.119Gi together, next to other pods "
        "3 nodes have cpu 7, memory 192Gi left, and none of them more than cpu 3, memory 64Gi: no room for 1 of large"
    }


def test_pipelines_that_autoscale_need_room_for_one_worker_at_a_time(draft: MakeDraft) -> None:
    scaling = [draft(name, 8, 2, autoscaling=True) for name in ("index", "search")]
    permanent = draft("render", 2, 1)
    assert not told([node("a", "4")], [permanent, *scaling])
    found = told([node("a", "4")], [permanent, *scaling], held("a", 1))
    assert list(found) == ["index", "search"]
    assert set(found.values()) == {
        "a worker requests cpu 2, memory 1.06Gi, next to other pods and the permanent workers a has "
        "cpu 1, memory 61.88Gi left: its jobs would wait"
    }


def test_a_gpu_that_another_pod_holds(draft: MakeDraft) -> None:
    gpu = draft("index", 1, 1, autoscaling=True, resource_limits={"gpu": {"type": "nvidia.com/gpu", "number": 1}})
    nodes = [node("a", "8"), node("b", "8", gpus="1")]
    assert not told(nodes, [gpu])
    (why,) = told(nodes, [gpu], held("b", 0.1, **{"nvidia.com/gpu": 1})).values()
    assert "nvidia.com/gpu 1" in why
    assert "none of them more than cpu 8, memory 64Gi, nvidia.com/gpu 0" in why


def test_only_suitable_nodes_count(draft: MakeDraft) -> None:
    picky = draft("picky", 2, 3, scheduling_spec={"node_selector": {"disk": "fast"}})
    fast, slow = node("a", "4", disk="fast"), node("b", "32")
    (why,) = told([fast, slow], [picky]).values()
    assert "a has cpu 4, memory 64Gi left: no room for 1 of picky" in why
    repelling = ClusterNode("c", {"disk": "fast"}, [("dedicated", "team", "NoSchedule")], slow.allocatable)
    assert told([fast, repelling], [picky])
    tolerant = draft(
        "tolerant",
        2,
        3,
        scheduling_spec={"node_selector": {"disk": "fast"}},
        tolerations=[{"key": "dedicated", "operator": "EXISTS"}],
    )
    assert not told([fast, repelling], [tolerant])


def test_pods_are_limited_too(draft: MakeDraft) -> None:
    full = ClusterNode("a", {}, (), {"cpu": "64", "memory": "64Gi", "pods": "3"})
    assert not told([full], [draft("small", 3, 1)])
    assert told([full], [draft("small", 3, 1)], held("a", 0))


def test_virtual_nodes_are_never_full(draft: MakeDraft) -> None:
    assert not told([ClusterNode("v", {"type": "virtual-kubelet"}, (), {})], [draft("small", 1000, 8)])


def test_a_worker_that_fits_no_empty_node_is_left_to_another_check(draft: MakeDraft) -> None:
    assert not told([node("a", "4")], [draft("huge", 1, 5), draft("small", 4, 1)])


def test_our_own_specifications_fit_on_four_cores() -> None:
    """With copies and evaluation; for what else is opt-in a machine must have more."""
    others = set(optional_specs.DIRECTORIES) - {"duplicates", "evaluate"}
    found = [
        each
        for each in drafts.find([pipeline_specs.SHIPPED_SPECS])
        if optional_specs.directory(each.path) not in others
    ]
    ours = overlays.apply([overlays.load("cpu", {})], found)
    assert not told([node("kind", "4", "8Gi")], ours, held("kind", 1.4, memory=3 * GI))


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.integers(1, 8), min_size=1, max_size=5), st.lists(st.integers(1, 12), min_size=1, max_size=4))
def test_equal_workers_fit_exactly_if_their_sum_does(workers: list[int], sizes: list[int]) -> None:
    found = [
        SpecDraft(
            Path(f"{number}.json"),
            {
                "pipeline": {"name": str(number)},
                "parallelism_spec": {"constant": count},
                "resource_requests": {"cpu": 1},
            },
            {},
        )
        for number, count in enumerate(workers)
    ]
    nodes = [node(str(number), str(size), "1Ti") for number, size in enumerate(sizes)]
    assert bool(told(nodes, found)) == (sum(workers) > sum(sizes))
