"""A pipeline that would be its own input is refused, as in Pachyderm."""

import grpc
import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.pps import pps_pb2

from tests.servers import Unique


def test_a_cycle_of_pipelines_is_refused_and_changes_nothing(client: Client, unique: Unique) -> None:
    repo, above, below = unique("in"), unique("above"), unique("below")
    client.create_repo(repo)
    transform = pps_pb2.Transform(cmd=["true"])

    def reads(name: str) -> pps_pb2.Input:
        return pps_pb2.Input(pfs=pps_pb2.PFSInput(repo=name, glob="/*"))

    client.create_pipeline(above, transform=transform, input=reads(repo))
    client.create_pipeline(below, transform=transform, input=reads(above))
    with pytest.raises(grpc.RpcError, match="provenance and subvenance"):
        client.create_pipeline(above, transform=transform, input=reads(below), update=True)
    (info,) = client.inspect_pipeline(above, details=True)
    assert (info.version, info.details.input.pfs.repo) == (1, repo)
    with pytest.raises(grpc.RpcError, match="cannot be in the provenance of its own branch"):
        client.create_pipeline(above, transform=transform, input=reads(above), update=True)
