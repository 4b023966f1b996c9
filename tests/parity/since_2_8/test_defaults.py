"""Defaults of the whole server and of projects, and the pipelines that follow them."""

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import grpc
import pytest
from python_pachyderm import Client

from tests.parity.places import Place, Refusal
from tests.parity.since_2_8.calls import RpcClient


class SetDefaults(Protocol):
    """Sets the server's defaults for the length of a block, and those it had again after that; yields the names of the
    pipelines that changed."""

    def __call__(
        self, create_pipeline_request: dict[str, Any], **orders: bool
    ) -> AbstractContextManager[list[str]]: ...


@pytest.fixture
def cluster(rpc: RpcClient) -> SetDefaults:
    """See SetDefaults."""

    @contextmanager
    def setting(create_pipeline_request: dict[str, Any], **orders: bool) -> Iterator[list[str]]:
        before = _get(rpc)
        text = json.dumps({"createPipelineRequest": create_pipeline_request})
        reply = _set(rpc, text, **orders)
        try:
            yield sorted(each.name for each in reply.affected_pipelines)
        finally:
            _set(rpc, before)

    return setting


def _get(rpc: RpcClient) -> str:
    text: str = rpc.call("pps_v2.API/GetClusterDefaults", "Empty", "ClusterDefaults").cluster_defaults_json
    return text


def _set(rpc: RpcClient, text: str, **orders: bool) -> Any:
    return rpc.call(
        "pps_v2.API/SetClusterDefaults", "SetClusterDefaults", "ClusterPipelines", cluster_defaults_json=text, **orders
    )


def _spec(name: str, repo: str, project: str = "default", **fields: Any) -> str:
    return json.dumps(
        {
            "pipeline": {"name": name, "project": {"name": project}},
            "input": {"pfs": {"repo": repo, "glob": "/*", "project": "default"}},
            "transform": {"cmd": ["true"], "env": {"OWN": "1"}},
            **fields,
        }
    )


@pytest.mark.skipif("PACHD_ADDRESS" in os.environ, reason="others may have set defaults; an installation of 2.12 does")
def test_there_are_no_defaults_at_first(rpc: RpcClient) -> None:
    reply = rpc.call("pps_v2.API/GetClusterDefaults", "Empty", "ClusterDefaults")
    assert json.loads(reply.cluster_defaults_json).get("createPipelineRequest", {}) == {}
    reply = rpc.call("pps_v2.API/GetProjectDefaults", "OfProject", "ProjectDefaults", project={"name": "default"})
    assert json.loads(reply.project_defaults_json) == {}


def test_new_pipelines_take_the_defaults_they_do_not_override(
    rpc: RpcClient, cluster: SetDefaults, place: Place
) -> None:
    repo, name = place.repo(), place.unique("p")
    defaults = {"datum_tries": 7, "jobTimeout": "60s", "transform": {"env": {"GIVEN": "x"}, "image": "alpine:3"}}
    with cluster(create_pipeline_request=defaults):
        effective = json.loads(rpc.create(_spec(name, repo, job_timeout="9s", datumTries=None)))
    assert effective["transform"] == {"image": "alpine:3", "cmd": ["true"], "env": {"GIVEN": "x", "OWN": "1"}}
    assert effective["jobTimeout"] == "9s"
    assert "datumTries" not in effective  # null takes a default away
    assert json.loads(rpc.inspect(name).user_spec_json)["datumTries"] is None


@pytest.mark.regenerates
def test_existing_pipelines_follow_when_regenerated(rpc: RpcClient, cluster: SetDefaults, place: Place) -> None:
    repo, names = place.repo(), [place.unique("p") for _ in range(3)]
    for name, own in zip(names, ({}, {"datumTries": "7"}, {"datumTries": "2"}), strict=True):
        rpc.create(_spec(name, repo, **own))
    with cluster(create_pipeline_request={"datumTries": 7}, regenerate=True, dry_run=True) as affected:
        assert names[0] in affected and not set(names[1:]) & set(affected)
        assert rpc.inspect(names[0]).version == 1
    with cluster(create_pipeline_request={"datumTries": 7}, regenerate=True) as affected:
        assert names[0] in affected and not set(names[1:]) & set(affected)
        assert [rpc.inspect(name).version for name in names] == [2, 1, 1]
        assert int(json.loads(rpc.inspect(names[0]).effective_spec_json)["datumTries"]) == 7


def test_a_projects_defaults_override_the_servers(
    rpc: RpcClient, cluster: SetDefaults, client: Client, place: Place
) -> None:
    repo, name = place.repo(), place.unique("p")
    project = place.unique("project")
    client.create_project(project)
    text = json.dumps({"createPipelineRequest": {"datumTries": 8, "description": "of the project"}})
    rpc.call(
        "pps_v2.API/SetProjectDefaults", "SetProjectDefaults", "Pipelines",
        project={"name": project}, project_defaults_json=text,
    )  # fmt: skip
    with cluster(create_pipeline_request={"datumTries": 7, "salt": "of the server"}):
        effective = json.loads(rpc.create(_spec(name, repo, project)))
    assert (effective["datumTries"], effective["description"], effective["salt"]) == (
        "8", "of the project", "of the server",
    )  # fmt: skip
    inspected = rpc.call("pfs_v2.API/InspectProjectV2", "OfProject", "InspectedProject", project={"name": project})
    assert (inspected.info.project.name, inspected.defaults_json) == (project, text)
    reply = rpc.call(
        "pps_v2.API/SetProjectDefaults", "SetProjectDefaults", "Pipelines",
        project={"name": project}, project_defaults_json="{}", regenerate=True,
    )  # fmt: skip
    assert [(each.project.name, each.name) for each in reply.affected_pipelines] == [(project, name)]


@pytest.mark.only_localpachd("in Pachyderm 2.12 they outlive the project, and are its successor's")
def test_a_project_takes_its_defaults_with_it(rpc: RpcClient, client: Client, place: Place) -> None:
    project = place.unique("project")
    for text in ('{"createPipelineRequest": {"datumTries": "5"}}', "{}"):
        client.create_project(project)
        reply = rpc.call("pps_v2.API/GetProjectDefaults", "OfProject", "ProjectDefaults", project={"name": project})
        assert json.loads(reply.project_defaults_json) == {}
        rpc.call(
            "pps_v2.API/SetProjectDefaults", "SetProjectDefaults", "Pipelines",
            project={"name": project}, project_defaults_json=text,
        )  # fmt: skip
        client.delete_project(project)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"x": 1}', '{"createPipelineRequest": {"datumTrys": 1}}', '{"createPipelineRequest": 3}']
)
def test_unreadable_defaults_are_refused(rpc: RpcClient, refusal: Refusal, text: str) -> None:
    code, said = refusal(
        rpc.call, "pps_v2.API/SetClusterDefaults", "SetClusterDefaults", "ClusterPipelines", cluster_defaults_json=text
    )
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert said.startswith("invalid cluster defaults JSON")


def test_missing_projects(rpc: RpcClient, refusal: Refusal) -> None:
    nowhere = {"name": "ghost"}
    for call, request, reply in (
        ("pps_v2.API/GetProjectDefaults", "OfProject", "ProjectDefaults"),
        ("pfs_v2.API/InspectProjectV2", "OfProject", "InspectedProject"),
    ):
        assert refusal(rpc.call, call, request, reply, project=nowhere)[0] is grpc.StatusCode.NOT_FOUND
