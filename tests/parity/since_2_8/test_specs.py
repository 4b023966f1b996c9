"""CreatePipelineV2: specifications as people write them, merged with defaults, refusal with reasons; RerunPipeline."""

import json
from collections.abc import Callable
from typing import Any, Protocol

import grpc
import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.pps import pps_pb2

from tests.parity.places import EXISTS, NOT_FOUND, MakeInput, Place, Refusal
from tests.parity.since_2_8.calls import RpcClient

INVALID = grpc.StatusCode.INVALID_ARGUMENT


class Write(Protocol):
    """Writes the specification of a pipeline over a repo with one file; returns its name and the JSON."""

    def __call__(self, **fields: Any) -> tuple[str, str]: ...


Newest = Callable[[str], tuple[int, int]]
"""The numbers of datums that a pipeline's newest job processed and skipped, once it has ended."""


@pytest.fixture
def written(place: Place) -> Write:
    """See Write."""

    def write(**fields: Any) -> tuple[str, str]:
        repo = place.repo()
        place.put(repo, a="1")
        name = place.unique("p")
        spec = {
            "pipeline": {"name": name},
            "input": {"pfs": {"repo": repo, "glob": "/*"}},
            "transform": {"cmd": ["sh"], "stdin": [f"cp /pfs/{repo}/* /pfs/out/"]},
        }
        return name, json.dumps({**spec, **fields})

    return write


@pytest.fixture
def newest(client: Client, place: Place) -> Newest:
    """See Newest."""

    def wait(name: str) -> tuple[int, int]:
        info = place.job(name, next(iter(client.list_job(pipeline_name=name, history=-1))).job.id)
        return info.data_processed, info.data_skipped

    return wait


def test_a_pipeline_is_created_from_a_written_specification(
    rpc: RpcClient, written: Write, client: Client, place: Place
) -> None:
    name, spec = written(datum_tries=2, jobTimeout="60s")
    effective = json.loads(rpc.create(spec))
    assert effective["pipeline"] == {"project": {"name": "default"}, "name": name}
    assert effective["transform"]["image"] == "ubuntu:20.04"
    assert (effective["datumTries"], effective["outputBranch"]) == ("2", "master")
    assert (effective["jobTimeout"], effective["reprocessSpec"]) == ("60s", "until_success")
    (job,) = client.list_job(pipeline_name=name)
    assert place.job(name, job.job.id).state == pps_pb2.JOB_SUCCESS
    assert place.paths(name) == ["/a"]


def test_a_specification_in_a_transaction_waits_for_its_end(
    rpc: RpcClient, written: Write, client: Client, place: Place, refusal: Refusal
) -> None:
    name, spec = written()
    rpc.transaction = client.start_transaction().id
    try:
        effective = json.loads(rpc.create(spec))
        code, text = refusal(rpc.create, spec)
        info = rpc.call("transaction_v2.API/InspectTransaction", "TransactionInfo", "TransactionInfo",
                          transaction={"id": rpc.transaction})  # fmt: skip
        assert [each.pipeline.name for each in client.list_pipeline() if each.pipeline.name == name] == []
        assert len(client.finish_transaction(rpc.transaction).responses) == 1
        made = rpc.transaction
    finally:
        rpc.transaction = ""
    assert effective["transform"]["image"] == "ubuntu:20.04"
    assert code is EXISTS and text.startswith("error running request 2 of 2: ")
    (request,) = info.requests
    assert json.loads(request.create_pipeline_v2.user_json) == json.loads(spec)
    assert json.loads(request.create_pipeline_v2.effective_json)["outputBranch"] == "master"
    assert place.job(name, made).state == pps_pb2.JOB_SUCCESS
    assert json.loads(rpc.inspect(name).user_spec_json) == json.loads(spec)


def test_the_written_specification_is_kept(rpc: RpcClient, written: Write) -> None:
    name, spec = written(datumTries=4)
    rpc.create(spec)
    info = rpc.inspect(name)
    assert json.loads(info.user_spec_json) == json.loads(spec)
    effective = json.loads(info.effective_spec_json)
    assert int(effective["datumTries"]) == 4
    assert effective["transform"]["image"] == "ubuntu:20.04"
    assert effective["input"]["pfs"]["glob"] == "/*"


def test_pipelines_of_older_clients_have_a_written_form_too(rpc: RpcClient, place: Place, pfs: MakeInput) -> None:
    name = place.pipeline("true", input=pfs(place.repo()), description="old")
    info = rpc.inspect(name)
    for text in (info.user_spec_json, info.effective_spec_json):
        spec = json.loads(text)
        assert (spec["pipeline"]["name"], spec["description"], int(spec["datumTries"])) == (name, "old", 3)


def test_a_dry_run_makes_nothing(rpc: RpcClient, written: Write, refusal: Refusal) -> None:
    name, spec = written()
    assert json.loads(rpc.create(spec, dry_run=True))["pipeline"]["name"] == name
    assert refusal(rpc.inspect, name)[0] is NOT_FOUND


def test_updating_must_be_asked_for(rpc: RpcClient, written: Write, refusal: Refusal, newest: Newest) -> None:
    name, spec = written()
    rpc.create(spec)
    assert refusal(rpc.create, spec) == (EXISTS, f'pipeline "default/{name}" already exists')
    assert newest(name) == (1, 0)
    rpc.create(spec, update=True)
    assert newest(name) == (0, 1)
    rpc.create(spec, update=True, reprocess=True)
    assert newest(name) == (1, 0)
    assert rpc.inspect(name).version == 3


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        ({"trasnform": {}}, ['unknown field "trasnform"']),
        ({"transform": {"cmd": ["true"], "comand": ["x"]}}, ['unknown field "comand"']),
        ({"datumTries": "many"}, ["many"]),
        ({"transform": {"cmd": "true"}}, ["cmd"]),
        ({"parallelismSpec": {"constant": 1, "constnat": 2}}, ['unknown field "constnat"']),
    ],
)
def test_unreadable_fields_are_refused_by_name(
    rpc: RpcClient, written: Write, refusal: Refusal, fields: dict[str, Any], parts: list[str]
) -> None:
    name, spec = written(**fields)
    code, text = refusal(rpc.create, spec)
    assert code is INVALID
    assert text.startswith("could not make effective spec: ")
    for part in parts:
        assert part in text
    assert refusal(rpc.inspect, name)[0] is NOT_FOUND


def test_a_pipeline_needs_a_name(rpc: RpcClient, refusal: Refusal) -> None:
    code, text = refusal(rpc.create, "{}")
    assert (code, text) == (grpc.StatusCode.UNKNOWN, "request.Pipeline cannot be nil")
    assert refusal(rpc.create, "[]")[0] is INVALID
    assert refusal(rpc.create, "{")[0] is INVALID


def test_a_rerun_is_a_new_version_with_the_same_specification(rpc: RpcClient, written: Write, newest: Newest) -> None:
    name, spec = written(description="as it was")
    rpc.create(spec)
    before = rpc.inspect(name)
    assert newest(name) == (1, 0)
    for reprocess, counts in ((False, (0, 1)), (True, (1, 0))):
        rpc.call("pps_v2.API/RerunPipeline", "Rerun", "Empty", pipeline={"name": name}, reprocess=reprocess)
        assert newest(name) == counts
    after = rpc.inspect(name)
    assert after.version == 3
    assert (after.user_spec_json, after.effective_spec_json) == (before.user_spec_json, before.effective_spec_json)


def test_only_an_existing_pipeline_is_rerun(rpc: RpcClient, refusal: Refusal) -> None:
    ghost = {"name": "ghost", "project": {"name": "default"}}  # without a project 2.12 fails otherwise
    assert refusal(rpc.call, "pps_v2.API/RerunPipeline", "Rerun", "Empty", pipeline=ghost)[0] is NOT_FOUND
    for call, request in (("StopPipeline", "Stop"), ("DeletePipeline", "Delete")):
        method = f"pps_v2.API/{call}"
        assert refusal(rpc.call, method, request, "Empty", pipeline=ghost, must_exist=True)[0] is NOT_FOUND
        rpc.call(method, request, "Empty", pipeline=ghost)
