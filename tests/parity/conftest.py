"""Fixtures of the parity tests. They know neither which server they run against nor how it is built."""

import os
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc
from python_pachyderm.proto.v2.pps import pps_pb2, pps_pb2_grpc

from tests.parity.places import ByVersion, FsckReport, MakeInput, Place, Refusal, delete_marked
from tests.servers import LATE, REGENERATE, Unique

collect_ignore = ["sdk"]  # it has an environment of its own: make sdk


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test of what differs between versions runs on a localpachd of each; the others run as 2.7 alone."""
    if "by_version" in metafunc.fixturenames and "PACHD_ADDRESS" not in os.environ:
        both = [pytest.param("localpachd", id="2.7"), pytest.param("newer_localpachd", id="2.12")]
        metafunc.parametrize("pachd", both, indirect=True, scope="session")


@pytest.fixture(scope="session")
def on_localpachd(client: Client) -> bool:
    """Whether the server is a localpachd, by its own account, wherever it runs."""
    version: str = client.get_remote_version().additional
    return version.startswith("+localpachd")


@pytest.fixture(autouse=True)
def _skip_elsewhere(request: pytest.FixtureRequest) -> None:
    for marker in request.node.iter_markers("only_localpachd"):
        (reason,) = marker.args
        if not request.getfixturevalue("on_localpachd"):
            pytest.skip(f"only localpachd: {reason}")
    asked = "PACHD_ADDRESS" not in os.environ or request.config.getoption(REGENERATE)
    if request.node.get_closest_marker("regenerates") and not asked:
        pytest.skip(f"this updates every pipeline of the server, other people's too: {REGENERATE} permits it")
    for marker in request.node.iter_markers("crashes_pachd"):
        (request_,) = marker.args
        if request.config.getoption(LATE) or not request.getfixturevalue("on_localpachd"):
            pytest.skip(f"pachd 2.7 crashes on {request_}")


@pytest.fixture
def unique(client: Client) -> Iterator[Unique]:
    """See Unique. Pipelines, repos, projects and secrets of such names are deleted after the test, however it ends."""
    mark, made = f"-{uuid.uuid4().hex[:8]}-", list[str]()

    def name(stem: str) -> str:
        made.append(f"{stem}{mark}{len(made)}")
        return made[-1]

    yield name
    if made:
        delete_marked(client, mark)


@pytest.fixture
def place(client: Client, unique: Unique) -> Place:
    """A corner of the server for one test."""
    return Place(client, unique)


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


@pytest.fixture(scope="session")
def by_version(client: Client) -> ByVersion:
    """See ByVersion."""
    version = client.get_remote_version()
    newer = (version.major, version.minor) >= (2, 12)

    def choose(before: Any, since: Any) -> Any:
        return since if newer else before

    return choose


@pytest.fixture
def complaints(stub: pfs_pb2_grpc.APIStub, on_localpachd: bool) -> FsckReport:
    """See Complaints."""

    def check(*repos: str, **fields: bool | pfs_pb2.Commit) -> list[str]:
        said = []
        try:
            said += [reply.error or reply.fix for reply in stub.Fsck(pfs_pb2.FsckRequest(**fields))]
        except grpc.RpcError as error:
            said.append(error.details())
            assert said[-1].startswith("commits with dangling references:"), said[-1]
        named = ("stale datum", *(f"/{repo}" for repo in repos))
        return [each for each in said if on_localpachd or any(name in each for name in named)]

    return check
