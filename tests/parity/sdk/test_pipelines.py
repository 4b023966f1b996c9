"""Pipelines, jobs, datums and logs through pachyderm-sdk."""

import json
import time
from typing import Any

import grpc
import pytest
from pachyderm_sdk import Client
from pachyderm_sdk.api import pfs, pps

from tests.parity.sdk.places import Place, Refusal


def _input(branch: pfs.Branch, glob: str = "/*") -> pps.Input:
    return pps.Input(pfs=pps.PfsInput(repo=branch.repo.name, project="default", glob=glob))


def _job(client: Client, pipeline: pps.Pipeline, commit: pfs.Commit) -> pps.JobInfo:
    return client.pps.inspect_job(job=pps.Job(pipeline=pipeline, id=commit.id), wait=True, details=True)


def _output(pipeline: pps.Pipeline, path: str) -> pfs.File:
    return pfs.File.from_uri(f"{pipeline.name}@master:{path}")


def test_a_pipeline_as_messages(client: Client, place: Place, refusal: Refusal) -> None:
    master = place.branch()
    place.put(master, a="1", b="2")
    pipeline = place.pipeline(f"echo said; cp /pfs/{master.repo.name}/* /pfs/out/", _input(master))
    assert client.pps.pipeline_exists(pipeline)
    commit = place.put(master, c="3")
    info = _job(client, pipeline, commit)
    assert (info.state, info.data_processed, info.data_skipped, info.data_total) == (pps.JobState.JOB_SUCCESS, 1, 2, 3)
    assert client.pps.job_exists(info.job)
    assert place.read(_output(pipeline, "/c")) == "3"
    shown = client.pps.inspect_pipeline(pipeline=pipeline, details=True)
    assert (shown.version, shown.details.input.pfs.glob, shown.details.transform.cmd) == (1, "/*", ["sh", "-e"])
    assert pipeline.name in [each.pipeline.name for each in client.pps.list_pipeline()]
    assert next(client.pps.list_job(pipeline=pipeline)).job.id == commit.id
    (in_set,) = client.pps.inspect_job_set(job_set=pps.JobSet(id=commit.id))
    assert in_set.job.pipeline.name == pipeline.name
    datums = list(client.pps.list_datum(job=info.job))
    states = [pps.DatumState.SUCCESS, pps.DatumState.SKIPPED, pps.DatumState.SKIPPED]
    assert sorted(each.state for each in datums) == sorted(states)
    (done,) = [each for each in datums if each.state == pps.DatumState.SUCCESS]
    assert client.pps.inspect_datum(datum=done.datum).stats.download_bytes == 1
    lines = [each.message for each in client.pps.get_logs(job=info.job) if each.user]
    assert lines == ["said"]
    first = next(client.pps.get_logs(pipeline=pipeline, master=True, follow=True))
    assert (first.pipeline_name, first.master, first.user) == (pipeline.name, True, False)
    client.pps.delete_job(job=info.job)
    assert not client.pps.job_exists(info.job)
    client.pps.delete_pipeline(pipeline=pipeline)
    assert not client.pps.pipeline_exists(pipeline)
    code, text = refusal(client.pps.inspect_pipeline, pipeline=pipeline)
    assert (code, f'branch "master" not found in repo default/{pipeline.name}.spec' in text) == (
        grpc.StatusCode.NOT_FOUND, True,
    )  # fmt: skip


def test_a_pipeline_from_a_dictionary(client: Client, place: Place) -> None:
    master = place.branch()
    place.put(master, a="1")
    pipeline = place.name_pipeline()
    spec: dict[str, Any] = {
        "pipeline": {"name": pipeline.name},
        "transform": {"image": "ubuntu:20.04", "cmd": ["sh"], "stdin": ["cp /pfs/in/* /pfs/out/"]},
        "input": {"pfs": {"name": "in", "repo": master.repo.name, "glob": "/"}},
        "datumTries": 1,
    }
    read = pps.CreatePipelineRequest().from_dict(spec)
    client.pps.create_pipeline(
        pipeline=read.pipeline, transform=read.transform, input=read.input, datum_tries=read.datum_tries
    )
    assert _job(client, pipeline, _head(client, pipeline)).details.datum_tries == 1
    assert place.read(_output(pipeline, "/a")) == "1"


@pytest.mark.since("2.8")
def test_a_pipeline_as_written(client: Client, place: Place, refusal: Refusal) -> None:
    master = place.branch()
    place.put(master, a="1")
    pipeline = place.name_pipeline()
    spec = {
        "pipeline": {"name": pipeline.name},
        "transform": {"image": "ubuntu:20.04", "cmd": ["sh"], "stdin": ["cp /pfs/in/* /pfs/out/"]},
        "input": {"pfs": {"name": "in", "repo": master.repo.name, "glob": "/"}},
    }
    client.pps.create_pipeline_v2(create_pipeline_request_json=json.dumps(spec))
    _job(client, pipeline, _head(client, pipeline))
    code, _ = refusal(client.pps.create_pipeline_v2, create_pipeline_request_json=json.dumps(spec))
    assert code is grpc.StatusCode.ALREADY_EXISTS
    spec["transform"]["stdin"] = ["echo other > /pfs/out/b"]
    reply = client.pps.create_pipeline_v2(create_pipeline_request_json=json.dumps(spec), update=True, reprocess=True)
    assert json.loads(reply.effective_create_pipeline_request_json)["input"]["pfs"]["name"] == "in"
    assert _job(client, pipeline, _head(client, pipeline)).pipeline_version == 2
    assert place.read(_output(pipeline, "/b")) == "other\n"
    info = client.pps.inspect_pipeline(pipeline=pipeline, details=True)
    assert json.loads(info.user_spec_json)["transform"]["stdin"] == ["echo other > /pfs/out/b"]
    typo = json.dumps({**spec, "imput": {}})
    assert "imput" in refusal(client.pps.create_pipeline_v2, create_pipeline_request_json=typo, update=True)[1]


def _head(client: Client, pipeline: pps.Pipeline) -> pfs.Commit:
    return client.pfs.inspect_branch(branch=pfs.Branch.from_uri(f"{pipeline.name}@master")).head


def _wait_for_state(client: Client, pipeline: pps.Pipeline, state: pps.PipelineState) -> None:
    """The scheduler sets the state after the call that causes it; no call waits for it."""
    deadline = time.monotonic() + 60
    while client.pps.inspect_pipeline(pipeline=pipeline).state != state:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_stopping_and_starting(client: Client, place: Place, refusal: Refusal) -> None:
    master = place.branch()
    place.put(master, a="1")
    pipeline = place.pipeline("true", _input(master))
    _job(client, pipeline, _head(client, pipeline))
    client.pps.stop_pipeline(pipeline=pipeline)
    assert client.pps.inspect_pipeline(pipeline=pipeline).stopped
    _wait_for_state(client, pipeline, pps.PipelineState.PIPELINE_PAUSED)
    client.pps.start_pipeline(pipeline=pipeline)
    place.put(master, a="2")
    info = _job(client, pipeline, _head(client, pipeline))
    assert (info.pipeline_version, info.data_processed) == (1, 1)
    client.pps.stop_job(job=info.job)
    code, text = refusal(client.pps.restart_datum, job=info.job, data_filters=["/a"])
    assert (code, text) == (
        grpc.StatusCode.UNKNOWN,
        f"datum matching filter [/a] could not be found for job ID {info.job.id}",
    )
    ghost = pps.Pipeline(name=place.unique("ghost"))
    assert refusal(client.pps.start_pipeline, pipeline=ghost)[0] is grpc.StatusCode.NOT_FOUND


@pytest.mark.since("2.9")
def test_datums_are_generated_in_batches(client: Client, place: Place) -> None:
    master = place.branch()
    place.put(master, a="1", b="2")
    batches = client.pps.generate_datums(_input(master), 1)
    assert [len(batch) for batch in batches] == [1, 1]
