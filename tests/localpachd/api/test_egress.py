"""Egress through the API, to a directory that test and server share."""

from pathlib import Path

import grpc
import pytest
from google.protobuf.message import Message
from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc

from tests.servers import Pachd, Unique


@pytest.fixture
def client(localpachd: Pachd) -> Client:
    return localpachd.client()


def ask(client: Client, repo: str, **target: Message) -> pfs_pb2.EgressResponse:
    repo_ = pfs_pb2.Repo(name=repo, type="user", project=pfs_pb2.Project(name="default"))
    commit = pfs_pb2.Commit(repo=repo_, branch=pfs_pb2.Branch(repo=repo_, name="master"))
    channel = client._channel
    return pfs_pb2_grpc.APIStub(channel).Egress(pfs_pb2.EgressRequest(commit=commit, **target))


def test_a_commit_is_copied_on_demand(client: Client, unique: Unique, tmp_path: Path) -> None:
    repo = unique("in")
    client.create_repo(repo)
    client.put_file_bytes((repo, "master"), "/a/b", b"text")
    reply = ask(client, repo, object_storage=pfs_pb2.ObjectStorageEgress(url=f"file://{tmp_path}/out"))
    assert reply.object_storage.bytes_written == 4
    assert (tmp_path / "out" / "a" / "b").read_bytes() == b"text"
    client.delete_repo(repo)


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ({"object_storage": pfs_pb2.ObjectStorageEgress(url="ftp://host/x")}, "unrecognized object store: ftp"),
        ({"sql_database": pfs_pb2.SQLDatabaseEgress(url="postgres://db")}, "does not serve egress to SQL databases"),
        ({}, "egress must have a target"),
    ],
)
def test_invalid_targets_are_refused(client: Client, unique: Unique, target: dict[str, Message], text: str) -> None:
    repo = unique("in")
    client.create_repo(repo)
    client.put_file_bytes((repo, "master"), "/a", b"text")
    with pytest.raises(grpc.RpcError, match=text):
        ask(client, repo, **target)
    client.delete_repo(repo)
