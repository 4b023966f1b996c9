"""The parts in which a pipeline changes, what follows downstream, and the cost."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.upgrading import costs, documents
from pipelines.upgrading.comparing import Step, affected, parts
from pipelines.upgrading.costs import Cost, Past
from tests.pipelines.upgrading.infos import changed, deployed, env


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
    before, after = documents.running(deployed(changed())), documents.stated(changed(patch))
    assert parts(before, after) == different
    assert parts(after, before) == different


READS = {"a": ["images"], "b": ["a"], "c": ["b", "models"], "d": ["models"], "e": ["c", "d"]}


@given(st.sets(st.sampled_from([*READS])), st.sets(st.sampled_from([*READS])))
def test_pipelines_are_computed_that_change_or_read_one_that_is(anew: set[str], others: set[str]) -> None:
    steps = [Step(name, "changed", reprocessed=True) for name in sorted(anew)]
    steps += [Step(name, "changed", ("resources",)) for name in sorted(others - anew)]
    found = affected(steps, READS)
    assert {name for name, all_ in found.items() if all_} == anew
    for name, repos in READS.items():
        assert (name in found) == (name in anew or any(repo in found for repo in repos))


def test_new_pipelines_and_other_inputs_compute_without_a_reprocessing() -> None:
    assert affected([Step("d", "new")], READS) == {"d": True, "e": False}
    assert affected([Step("d", "changed", ("input",))], READS) == {"d": True, "e": False}
    assert affected([Step("d", "unchanged")], READS) == {}


def spec(workers: int, gpus: int = 0) -> Any:
    request = pps_pb2.CreatePipelineRequest()
    request.parallelism_spec.constant = workers
    request.resource_limits.gpu.number = gpus
    return request


@pytest.mark.parametrize(
    ("past", "workers", "seconds"),
    [
        (Past(10, 2, 6.0), 1, 30.0),
        (Past(10, 2, 6.0), 5, 6.0),
        (Past(2, 2, 6.0), 5, 3.0),
        (Past(0), 1, 0.0),
        (Past(10), 1, None),
        (Past(None), 1, None),
    ],
)
def test_the_time_is_that_of_the_datums_of_the_last_job_that_computed(
    past: Past, workers: int, seconds: float | None
) -> None:
    assert costs.estimated("a", True, spec(workers), past, 5) == Cost("a", True, False, past.total, seconds, 5)


def test_the_total_names_what_is_unknown() -> None:
    assert costs.estimated("a", False, spec(1, gpus=1), Past(None), 0).gpu
    found = [Cost("a", True, False, 10, 4.0, 100), Cost("b", False, True, 5, None, 50), Cost("c", True, False)]
    total = costs.total(found)
    assert (total.datums, total.seconds, total.bytes, total.unknown) == (15, 4.0, 150, ("b", "c"))
