"""Metadata by key: edited all or none, shown with what it belongs to, and deleted with it."""

from collections.abc import Callable
from typing import Any

import grpc
import pytest
from python_pachyderm import Client

from tests.parity.places import MakeInput, Place, Refusal
from tests.parity.since_2_8.calls import RpcClient

Edit = Callable[..., None]
"""Makes edits, each a message's fields: which thing, and one operation."""


@pytest.fixture
def edit(rpc: RpcClient) -> Edit:
    """See Edit."""

    def run(*edits: dict[str, Any]) -> None:
        rpc.call("metadata.API/EditMetadata", "Edits", "Empty", edits=edits)

    return run


def _metadata(message: Any) -> dict[str, str]:
    return {pair.key: pair.value for pair in message.metadata}


def _add(key: str, value: str) -> dict[str, Any]:
    return {"add_key": {"key": key, "value": value}}


def test_everything_can_have_metadata(rpc: RpcClient, client: Client, place: Place, pfs: MakeInput, edit: Edit) -> None:
    project, repo = place.unique("project"), place.repo()
    client.create_project(project)
    place.put(repo, a="1")
    commit = place.put(repo, a="2")
    place.put(repo, a="3")
    pipeline = place.pipeline("true", input=pfs(repo))
    named = {"name": {"project": {"name": "default"}, "name": repo}}
    branch = {"name": {"repo": named, "name": "master"}}
    edit(
        {"project": {"name": project}, **_add("of", "project")},
        {"repo": named, **_add("of", "repo")},
        {"branch": branch, **_add("of", "branch")},
        {"commit": {"ancestor": {"offset": 1, "start": {"branch_head": branch}}}, **_add("of", "commit")},
        {"commit": {"branch_root": {"offset": 0, "branch": branch}}, **_add("of", "root")},
        {"pipeline": {"name": {"project": {"name": "default"}, "name": pipeline}}, **_add("of", "pipeline")},
    )
    of_repo = {"name": repo, "type": "user"}
    inspect = {
        "project": rpc.call("pfs_v2.API/InspectProject", "OfProject", "Noted", project={"name": project}),
        "repo": rpc.call("pfs_v2.API/InspectRepo", "InspectRepo", "RepoInfo", repo=of_repo),
        "branch": rpc.call(
            "pfs_v2.API/InspectBranch", "InspectBranch", "BranchInfo", branch={"repo": of_repo, "name": "master"}
        ),
        "commit": rpc.call(
            "pfs_v2.API/InspectCommit", "InspectCommit", "CommitInfo", commit={"repo": of_repo, "id": commit}
        ),
        "root": rpc.call(
            "pfs_v2.API/InspectCommit", "InspectCommit", "CommitInfo", commit={"repo": of_repo, "id": "master.1"}
        ),
        "pipeline": rpc.call(
            "pps_v2.API/InspectPipeline", "Inspect", "NotedPipeline", pipeline={"name": pipeline}, details=True
        ),
    }
    for thing, message in inspect.items():
        assert _metadata(message) == {"of": thing}
    client.delete_project(project)
    client.create_project(project)
    fresh = rpc.call("pfs_v2.API/InspectProject", "OfProject", "Noted", project={"name": project})
    assert _metadata(fresh) == {}
    client.delete_project(project)


def test_the_cluster_has_metadata(rpc: RpcClient, place: Place, edit: Edit) -> None:
    key = place.unique("key")
    edit({"cluster": {}, **_add(key, "1")})
    assert _metadata(rpc.call("admin_v2.API/InspectCluster", "Empty", "ClusterInfo"))[key] == "1"
    edit({"cluster": {}, "delete_key": {"key": key}})
    assert key not in _metadata(rpc.call("admin_v2.API/InspectCluster", "Empty", "ClusterInfo"))


def test_edits_are_made_all_or_none(rpc: RpcClient, place: Place, edit: Edit, refusal: Refusal) -> None:
    repo = place.repo()
    named = {"name": {"project": {"name": "default"}, "name": repo}}

    def found() -> dict[str, str]:
        return _metadata(
            rpc.call("pfs_v2.API/InspectRepo", "InspectRepo", "RepoInfo", repo={"name": repo, "type": "user"})
        )

    edit({"repo": named, **_add("a", "1")}, {"repo": named, "edit_key": {"key": "a", "value": "2"}})
    edit({"repo": named, "edit_key": {"key": "b", "value": "3"}}, {"repo": named, "delete_key": {"key": "ghost"}})
    assert found() == {"a": "2", "b": "3"}
    code, text = refusal(edit, {"repo": named, "delete_key": {"key": "b"}}, {"repo": named, **_add("a", "4")})
    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert 'add_key target key "a" already exists; use edit_key instead' in text
    assert "edit #1" in text
    assert found() == {"a": "2", "b": "3"}
    edit({"repo": named, "replace": {"replacement": [{"key": "c", "value": "5"}]}})
    assert found() == {"c": "5"}
    ghost = {"name": {"project": {"name": "default"}, "name": place.unique("ghost")}}
    assert "not found" in refusal(edit, {"repo": ghost, **_add("a", "1")})[1]
    for wrong in ({"repo": named}, _add("a", "1"), {"repo": named, **_add("", "1")}):
        refusal(edit, wrong)
    assert found() == {"c": "5"}
