"""A stream of writes takes effect as a whole or not at all, even if its sender disappears midway."""

from collections.abc import Iterator

import grpc
import pytest
from google.protobuf.wrappers_pb2 import BytesValue
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc

from tests.parity.places import Place, commit_of


class GoneError(Exception):
    """Raised in a stream of requests, which makes gRPC cancel the call."""


def test_an_interrupted_stream_writes_nothing(place: Place, stub: pfs_pb2_grpc.APIStub) -> None:
    name = place.repo()

    def torn(number: int) -> Iterator[pfs_pb2.ModifyFileRequest]:
        yield pfs_pb2.ModifyFileRequest(set_commit=commit_of(name, branch="master"))
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
