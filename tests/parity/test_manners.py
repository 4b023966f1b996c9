"""These tests on a server in use: they leave what is other people's as it was, and nothing of their own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2
from python_pachyderm.proto.v2.pps import pps_pb2

from tests.parity.places import NOT_FOUND, delete_marked, listed_repos, repo_of
from tests.parity.since_2_8.calls import RpcClient
from tests.servers import StartPachd, Unique

_TRUE = pps_pb2.Transform(image="ubuntu:20.04", cmd=["true"])


def _in_use(client: Client, rpc: RpcClient) -> tuple[str, list[tuple[str, int]], list[str]]:
    """The server's defaults, the names and versions of its pipelines, and its repos."""
    defaults = rpc.call("pps_v2.API/GetClusterDefaults", "Empty", "ClusterDefaults").cluster_defaults_json
    pipelines = [(info.pipeline.name, info.version) for info in client.list_pipeline()]
    return defaults, pipelines, [info.repo.name for info in listed_repos(client)]


@pytest.mark.only_in_all
def test_a_server_in_use_keeps_its_defaults_and_pipelines(start_pachd: StartPachd, tmp_path: Path) -> None:
    server = start_pachd(tmp_path / "root")
    client = server.client()
    client.create_repo("theirs")
    given = pps_pb2.Input(pfs=pps_pb2.PFSInput(repo="theirs", glob="/*"))
    client.create_pipeline("theirs-too", transform=_TRUE, input=given)
    text = json.dumps({"createPipelineRequest": {"datum_tries": 5, "salt": "theirs"}}, indent=3)
    with grpc.insecure_channel(server.address.removeprefix("grpc://")) as channel:
        rpc = RpcClient(channel)
        rpc.call(
            "pps_v2.API/SetClusterDefaults", "SetClusterDefaults", "ClusterPipelines", cluster_defaults_json=text
        )  # fmt: skip
        before = _in_use(client, rpc)
        assert before[0] == text
        suite = [sys.executable, "-P", "-m", "pytest", "-q", "-rs", "tests/parity/since_2_8/test_defaults.py"]
        there = {**os.environ, "PACHD_ADDRESS": server.address, "PYTHONPATH": str(Path.cwd())}
        done = subprocess.run(suite, env=there, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
        assert "updates every pipeline of the server, other people's too: --regenerate permits it" in done.stdout
        assert _in_use(client, rpc) == before


def test_whatever_bears_the_mark_of_a_test_is_deleted(client: Client, unique: Unique) -> None:
    mark, project = unique("mark"), unique("project") + unique("mark")
    names = [f"{stem}{mark}" for stem in ("first", "second")]
    client.create_project(f"p{mark}")
    for name in names:
        client.create_repo(name)
        given = pps_pb2.Input(pfs=pps_pb2.PFSInput(repo=name, glob="/*"))
        client.create_pipeline(f"of-{name}"[:51], transform=_TRUE, input=given)
    client.create_repo("inside", project_name=f"p{mark}")
    client.create_secret(names[0], {"key": "value"})
    client.create_repo(project)
    delete_marked(client, mark)
    assert not [info for info in client.list_pipeline() if mark in info.pipeline.name]
    assert not [info for info in client.list_project() if mark in info.project.name]
    assert not [info for info in client.list_secret() if mark in info.secret.name]
    assert [info.repo.name for info in listed_repos(client) if mark in info.repo.name] == []
    assert client.inspect_repo(project)  # which bears another mark


class _Deletion(grpc.RpcError):
    def code(self) -> grpc.StatusCode:
        return NOT_FOUND


class _DeletingClient(Client):  # type: ignore[misc]  # python-pachyderm has no types
    """A client of a Pachyderm on which somebody deletes a repo that the next two listings are about to describe."""

    def __init__(self) -> None:
        self.left = 2

    def list_repo(self, *_: Any, **__: Any) -> Iterator[pfs_pb2.RepoInfo]:
        yield pfs_pb2.RepoInfo(repo=repo_of("first"))
        self.left -= 1
        if self.left >= 0:
            raise _Deletion
        yield pfs_pb2.RepoInfo(repo=repo_of("last"))


def test_repos_are_listed_beside_deletions() -> None:
    assert [info.repo.name for info in listed_repos(_DeletingClient())] == ["first", "last"]
