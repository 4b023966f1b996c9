"""The parts in which a pipeline changes, what follows downstream, and the cost."""

from typing import Any

import pytest
from hypothesis import given, strategies as st
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.upgrades import spec_documents, upgrade_costs
from pipelines.upgrades.upgrade_costs import PastJobs, PipelineCost
from pipelines.upgrades.upgrade_steps import UpgradeStep, parts, recomputed_pipelines
from tests.pipelines.upgrades.pipeline_infos import changed, deployed, env


@pytest.mark.parametrize(
    ("patch", "different"),
    [
        ({}, ()),
        ({"description": "another"}, ()),
        (env(LOOKALIKE_STAGE="search-2"), ("code",)),
        ({"transform": {"image": "lookalike-cpu:0.2.0"}}, ("image",)),
        ({"transform": {"cmd": ["sh"]}}, ("command",)),
        ({"transform": {"datum_batching": True}}, ("command",)),
        (env(K="4"), ("environment",)),
        ({"input": {"pfs": {"glob": "/"}}}, ("input",)),
        ({"resource_requests": {"memory": "2Gi"}}, ("resources",)),
        ({"resource_limits": None}, ("resources",)),
        ({"transform": {"image_pull_secrets": ["mine"]}}, ("resources",)),
        ({"datum_timeout": "60s"}, ("settings",)),
        ({**env(LOOKALIKE_STAGE="search-2", K="4"), "autoscaling": True}, ("code", "environment", "resources")),
    ],
)
def test_the_parts_of_a_change(patch: dict[str, Any], different: tuple[str, ...]) -> None:
    before, after = spec_documents.from_deployed(deployed(changed())), spec_documents.from_spec(changed(patch))
    assert parts(before, after) == different
    assert parts(after, before) == different


READS = {"a": ["images"], "b": ["a"], "c": ["b", "models"], "d": ["models"], "e": ["c", "d"]}


@given(st.sets(st.sampled_from([*READS])), st.sets(st.sampled_from([*READS])))
def test_pipelines_are_computed_that_change_or_read_one_that_is(anew: set[str], others: set[str]) -> None:
    steps = [UpgradeStep(name, "changed", reprocessed=True) for name in sorted(anew)]
    steps += [UpgradeStep(name, "changed", ("resources",)) for name in sorted(others - anew)]
    found = recomputed_pipelines(steps, READS)
    assert {name for name, all_ in found.items() if all_} == anew
    for name, repos in READS.items():
        assert (name in found) == (name in anew or any(repo in found for repo in repos))


def test_new_pipelines_and_other_inputs_compute_without_a_reprocessing() -> None:
    assert recomputed_pipelines([UpgradeStep("d", "new")], READS) == {"d": True, "e": False}
    assert recomputed_pipelines([UpgradeStep("d", "changed", ("input",))], READS) == {"d": True, "e": False}
    assert recomputed_pipelines([UpgradeStep("d", "unchanged")], READS) == {}


def spec(workers: int, gpus: int = 0) -> Any:
    request = pps_pb2.CreatePipelineRequest()
    request.parallelism_spec.constant = workers
    request.resource_limits.gpu.number = gpus
    return request


@pytest.mark.parametrize(
    ("past", "workers", "seconds"),
    [
        (PastJobs(10, 2, 6.0), 1, 30.0),
        (PastJobs(10, 2, 6.0), 5, 6.0),
        (PastJobs(2, 2, 6.0), 5, 3.0),
        (PastJobs(0), 1, 0.0),
        (PastJobs(10), 1, None),
        (PastJobs(None), 1, None),
    ],
)
def test_the_time_is_that_of_the_datums_of_the_last_job_that_computed(
    past: PastJobs, workers: int, seconds: float | None
) -> None:
    assert upgrade_costs.estimated("a", True, spec(workers), past, 5) == PipelineCost(
        "a", True, False, past.total, seconds, 5
    )


def test_the_total_names_what_is_unknown() -> None:
    assert upgrade_costs.estimated("a", False, spec(1, gpus=1), PastJobs(None), 0).gpu
    found = [
        PipelineCost("a", True, False, 10, 4.0, 100),
        PipelineCost("b", False, True, 5, None, 50),
        PipelineCost("c", True, False),
    ]
    total = upgrade_costs.total(found)
    assert (total.datums, total.seconds, total.bytes, total.unknown) == (15, 4.0, 150, ("b", "c"))
