"""Fixtures of the parity tests. They know neither which server they run against nor how it is built."""

from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2_grpc
from python_pachyderm.proto.v2.pps import pps_pb2, pps_pb2_grpc

from tests.parity.places import MakeInput, Place, Refusal
from tests.servers import Unique

collect_ignore = ["sdk"]  # it has an environment of its own: make sdk


@pytest.fixture
def place(client: Client, unique: Unique) -> Iterator[Place]:
    """A corner of the server for one test."""
    corner = Place(client, unique)
    yield corner
    corner.clean_up()


@pytest.fixture
def pfs() -> MakeInput:
    """See MakeInput."""

    def make(repo: str, glob: str = "/*", **fields: Any) -> pps_pb2.Input:
        return pps_pb2.Input(pfs=pps_pb2.PFSInput(repo=repo, glob=glob, **fields))

    return make


@pytest.fixture(scope="session")
def stub(client: Client) -> pfs_pb2_grpc.APIStub:
    """The generated stub of pfs, for requests that the client's own methods cannot make."""
    return pfs_pb2_grpc.APIStub(client._channel)


@pytest.fixture(scope="session")
def pps_stub(client: Client) -> pps_pb2_grpc.APIStub:
    """The generated stub of pps, for the same."""
    return pps_pb2_grpc.APIStub(client._channel)


@pytest.fixture(scope="session")
def refusal() -> Refusal:
    """See Refusal."""

    def refuse(call: Callable[..., Any], /, *arguments: object, **options: object) -> tuple[grpc.StatusCode, str]:
        with pytest.raises((grpc.RpcError, ConnectionError)) as refused:
            result = call(*arguments, **options)
            if result is not None and not hasattr(result, "DESCRIPTOR"):
                list(result)
        # The client wraps what goes wrong at the first byte of a file.
        error: Any = refused.value if isinstance(refused.value, grpc.RpcError) else refused.value.__cause__
        return error.code(), error.details()

    return refuse
