"""The calls about the server itself, and messages of any size."""

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.admin import admin_pb2, admin_pb2_grpc
from python_pachyderm.proto.v2.enterprise import enterprise_pb2, enterprise_pb2_grpc
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc
from python_pachyderm.proto.v2.version.versionpb import version_pb2

from tests.servers import Pachd, Unique


@pytest.fixture(scope="module")
def channel(localpachd: Pachd) -> Iterator[grpc.Channel]:
    options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    with grpc.insecure_channel(localpachd.address.removeprefix("grpc://"), options=options) as channel:
        yield channel


def warnings(channel: grpc.Channel, **fields: Any) -> list[str]:
    reply = admin_pb2_grpc.APIStub(channel).InspectCluster(admin_pb2.InspectClusterRequest(**fields))
    assert reply.version_warnings_ok
    return list(reply.version_warnings)


def test_a_client_of_an_unsupported_version_is_warned(channel: grpc.Channel) -> None:
    assert warnings(channel) == []
    assert warnings(channel, client_version=version_pb2.Version(major=2, minor=7, micro=3)) == []
    assert warnings(channel, client_version=version_pb2.Version(major=2, minor=12, micro=1)) == []
    assert warnings(channel, client_version=version_pb2.Version()) == []
    for major, minor in ((1, 13), (2, 6), (2, 13), (3, 0)):
        (text,) = warnings(channel, client_version=version_pb2.Version(major=major, minor=minor))
        assert f"your client is {major}.{minor}:" in text


def test_an_unknown_project_is_a_warning(channel: grpc.Channel) -> None:
    assert warnings(channel, current_project=pfs_pb2.Project(name="default")) == []
    (text,) = warnings(channel, current_project=pfs_pb2.Project(name="ghost"))
    assert text.startswith('WARNING: Could not inspect project "ghost": ')


def test_there_is_no_licence(channel: grpc.Channel) -> None:
    reply = enterprise_pb2_grpc.APIStub(channel).GetState(enterprise_pb2.GetStateRequest())
    assert reply.state == enterprise_pb2.NONE


def test_messages_may_be_as_large_as_in_pachyderm(channel: grpc.Channel, client: Client, unique: Unique) -> None:
    name, data = unique("big"), bytes(19 << 20)
    client.create_repo(name)
    commit = pfs_pb2.Commit(branch=pfs_pb2.Branch(repo=pfs_pb2.Repo(name=name, type="user"), name="master"))
    requests = [
        pfs_pb2.ModifyFileRequest(set_commit=commit),
        pfs_pb2.ModifyFileRequest(add_file=pfs_pb2.AddFile(path="/big", raw={"value": data})),
    ]
    # pachctl put file --compress sends gzip.
    pfs_pb2_grpc.APIStub(channel).ModifyFile(iter(requests), compression=grpc.Compression.Gzip)
    assert client.inspect_file((name, "master"), "/big").size_bytes == len(data)
