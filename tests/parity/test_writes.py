"""A stream of writes takes effect as a whole or not at all, also where its sender goes away in the middle."""

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.wrappers_pb2 import BytesValue
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc


class GoneError(Exception):
    """What makes gRPC cancel the call that it happens in."""


def test_an_interrupted_stream_writes_nothing(place: Any) -> None:
    name = place.repo()
    repo = pfs_pb2.Repo(name=name, type="user", project=pfs_pb2.Project(name="default"))
    commit = pfs_pb2.Commit(repo=repo, branch=pfs_pb2.Branch(repo=repo, name="master"))
    stub = pfs_pb2_grpc.APIStub(place.client._channel)

    def torn(number: int) -> Iterator[Any]:
        yield pfs_pb2.ModifyFileRequest(set_commit=commit)
        for each in range(number):
            added = pfs_pb2.AddFile(path=f"/{number}-{each}", raw=BytesValue(value=b"x"))
            yield pfs_pb2.ModifyFileRequest(add_file=added)
        raise GoneError

    for number in range(1, 40):
        with pytest.raises(grpc.RpcError):
            stub.ModifyFile(torn(number))
    whole = place.put(name, whole=b"x")
    assert place.paths(name) == ["/whole"]
    assert [each.commit.id for each in place.client.list_commit(name)] == [whole]
