"""Pipeline specifications: defaults, salts, the typed form, the form in the database, and refusals with exact texts."""

from dataclasses import replace
from typing import Any

import pytest

from localpachd import ids
from localpachd.errors import PachError, Unimplemented
from localpachd.pps.specs import spec
from localpachd.pps.specs.inputs import PfsInput
from localpachd.worker.tasks import WorkerPod

NOW = 1_700_000_000_000_000_000
INPUT = {"pfs": {"repo": "in", "glob": "/*"}}


def request(**fields: Any) -> dict[str, Any]:
    """A CreatePipelineRequest as protojson; fields that are None are left out."""
    raw = {"pipeline": {"name": "p"}, "transform": {"cmd": ["true"]}, "input": INPUT, **fields}
    return {key: value for key, value in raw.items() if value is not None}


def test_defaults() -> None:
    parsed = spec.parse(request(), NOW)
    assert (parsed.raw["pipeline"], parsed.output_branch) == ({"name": "p", "project": {"name": "default"}}, "master")
    assert (parsed.parallelism, parsed.task.tries, parsed.task.image) == (1, 3, "ubuntu:20.04")
    assert (parsed.task.datum_timeout, parsed.job_timeout, parsed.task.gpus) == (None, None, 0)
    assert not parsed.reprocess_every_job
    assert parsed.input == PfsInput(name="in", project="default", repo="in", glob="/*")
    assert ids.is_id(parsed.salt)
    assert parsed.raw["datum_tries"] == "3"
    assert parsed.raw["reprocess_spec"] == "until_success"


def test_every_field_that_the_engine_reads() -> None:
    parsed = spec.parse(
        request(
            pipeline={"name": "p", "project": {"name": "q"}},
            transform={
                "cmd": ["sh"],
                "stdin": ["a", "b"],
                "err_cmd": ["sh", "-c"],
                "err_stdin": ["c"],
                "env": {"K": "v"},
                "accept_return_code": ["3", "4"],
                "working_dir": "/w",
                "user": "u",
                "image": "i:1",
                "datum_batching": True,
            },
            parallelism_spec={"constant": "4"},
            datum_tries="5",
            datum_timeout="1.5s",
            job_timeout="60s",
            datum_set_spec={"number": "7", "size_bytes": "8", "per_worker": "9"},
            resource_limits={"gpu": {"type": "nvidia.com/gpu", "number": "2"}, "memory": "1.5Gi", "cpu": 0.5},
            autoscaling=True,
            reprocess_spec="every_job",
            output_branch="o",
            description="d",
            salt="s",
        ),
        NOW,
    )
    assert (parsed.parallelism, parsed.task.tries, parsed.task.gpus) == (4, 5, 2)
    assert (parsed.task.datum_timeout, parsed.job_timeout) == (1.5, 60.0)
    assert parsed.datum_set == spec.DatumSetSpec(7, 8, 9)
    assert (parsed.autoscaling, parsed.reprocess_every_job, parsed.output_branch) == (True, True, "o")
    assert (parsed.raw["description"], parsed.salt) == ("d", "s")
    task = replace(parsed.task, pod=WorkerPod(worker="w"))
    assert (dict(task.env), task.pod.worker) == ({"K": "v"}, "w")
    assert (task.cmd, task.stdin, task.err_cmd, task.err_stdin) == (("sh",), ("a", "b"), ("sh", "-c"), ("c",))
    assert (task.memory, task.cpus) == (3 << 29, 0.5)
    assert (task.accept_return_code, task.batching, task.tries, task.gpus) == (frozenset({3, 4}), True, 5, 2)
    assert (task.datum_timeout, task.working_dir, task.user, task.image) == (1.5, "/w", "u", "i:1")


def test_fields_for_the_request_only_are_not_kept() -> None:
    parsed = spec.parse(request(update=True, reprocess=True, dry_run=True), NOW)
    assert not {"update", "reprocess", "dry_run"} & set(parsed.raw)


def test_the_form_in_the_database_is_read_back() -> None:
    parsed = spec.parse(request(input={"cross": [INPUT, {"pfs": {"repo": "b", "glob": "/", "lazy": True}}]}), NOW)
    assert spec.from_json(parsed.to_json()) == parsed


def test_salts() -> None:
    first = spec.parse(request(), NOW)
    assert spec.parse(request(salt="given"), NOW).salt == "given"
    assert spec.parse(request(salt="given"), NOW, first).salt == first.salt
    renewed = spec.parse(request(salt="given", reprocess=True), NOW, first).salt
    assert renewed not in (first.salt, "given")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"pipeline": None}, "request.Pipeline cannot be nil"),
        ({"pipeline": {}}, "invalid pipeline spec: request.Pipeline.Name cannot be empty"),
        (
            {"pipeline": {"name": "a/b"}},
            "invalid pipeline name: name (a/b) invalid: "
            "only alphanumeric characters, underscores, and dashes are allowed",
        ),
        ({"pipeline": {"name": "a" * 60}}, f'pipeline name "{"a" * 60}" is 9 characters longer than the 51 max'),
        (
            {"pipeline": {"name": "a" * 51, "project": {"name": "My_Project"}}},
            f'Kubernetes name "my-project-{"a" * 51}-v99" is 3 characters longer than the 63 max',
        ),
        ({"pipeline": {"name": "-a"}}, "pipeline names must start with an alphanumeric character"),
        ({"tf_job": {}}, "embedding TFJobs in pipelines is not supported yet"),
        ({"s3_out": True, "spout": {}}, "s3 output is not supported in spouts or services"),
        ({"transform": None}, "pipeline must specify a transform"),
        (
            {"reprocess_spec": "sometimes"},
            "invalid pipeline spec: ReprocessSpec must be one of 'until_success' or 'every_job'",
        ),
        (
            {"spout": {}, "autoscaling": True},
            "autoscaling can't be used with spouts (spouts aren't triggered externally)",
        ),
        (
            {"tolerations": [{"key": "k", "operator": "EXISTS"}, {"key": "l"}]},
            "toleration 2/2: cannot omit key/value comparison operator; specify EQUAL or EXISTS",
        ),
        (
            {"service": {}, "parallelism_spec": {"constant": "2"}},
            "services can only be run with a constant parallelism of 1",
        ),
        ({"pod_spec": "{"}, "malformed PodSpec"),
        ({"pod_patch": "["}, "malformed PodPatch"),
        ({"pod_spec": "[" * 100_000}, "malformed PodSpec"),
        ({"service": {"type": "Odd"}}, "the following service type Odd is not allowed"),
        ({"spout": {}}, "spout pipelines (without a service) must not have an input"),
        ({"service": {"internal_port": 80}}, "service.external_port must be a port from 1 to 65535"),
        ({"spout": {"service": {"internal_port": 0}}}, "service.internal_port must be a port from 1 to 65535"),
        (
            {"service": {"internal_port": 80, "external_port": 30080}, "input": None},
            "a service needs an input: without one it gets no job and is never started",
        ),
        ({"input": {"pfs": {"repo": "r"}}}, "input must specify a glob"),
    ],
)
def test_refusals(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(PachError) as refused:
        spec.parse(request(**fields), NOW)
    assert str(refused.value) == text


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"spout": {"service": {"internal_port": 80, "external_port": 30080}}}, "inputs of spouts"),
        ({"egress": {"sql_database": {"url": "postgres://db"}}}, "egress to SQL databases"),
        ({"s3_out": True}, "s3_out"),
        ({"input": {"pfs": {"repo": "r", "glob": "/", "s3": True}}}, "s3 inputs"),
    ],
)
def test_features_of_clusters_are_refused_by_name(fields: dict[str, Any], what: str) -> None:
    with pytest.raises(Unimplemented, match=f"does not serve {what} yet"):
        spec.parse(request(**fields), NOW)


def test_the_input_of_list_datum() -> None:
    assert spec.input_of(INPUT, NOW) == PfsInput(name="in", project="default", repo="in", glob="/*")
    with pytest.raises(PachError, match="can't list datums with a cron input"):
        spec.input_of({"cron": {"name": "tick", "spec": "@daily"}}, NOW)
