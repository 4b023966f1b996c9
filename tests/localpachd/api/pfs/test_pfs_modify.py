"""A stream of changes that is refused is read on within limits."""

import itertools
from collections.abc import Iterator
from typing import cast

import grpc
import pytest

from localpachd.api.pfs.pfs_modify import ModifyCalls
from localpachd.api.schema.schema import pfs_pb2
from localpachd.errors import NotFound, PachError
from localpachd.pfs.pfs_service import PfsService

NO_CONTEXT = cast(grpc.ServicerContext, None)
"""These calls do not look at their context."""


class Calls(ModifyCalls):
    """The calls without a server."""

    def __init__(self, pfs: PfsService) -> None:
        self._pfs = pfs


def _nowhere() -> pfs_pb2.ModifyFileRequest:
    repo = pfs_pb2.Repo(name="nowhere", type="user", project=pfs_pb2.Project(name="default"))
    branch = pfs_pb2.Branch(repo=repo, name="master")
    return pfs_pb2.ModifyFileRequest(set_commit=pfs_pb2.Commit(repo=repo, branch=branch))


def _added(path: str, size: int = 1) -> pfs_pb2.ModifyFileRequest:
    request = pfs_pb2.ModifyFileRequest(add_file=pfs_pb2.AddFile(path=path))
    request.add_file.raw.value = bytes(size)
    return request


@pytest.mark.parametrize("more", [0, 1, 1000])
def test_a_refused_client_may_finish_its_stream(engine_pfs: PfsService, more: int) -> None:
    rest = iter([_added("/a")] * more)
    with pytest.raises(NotFound, match="nowhere"):
        Calls(engine_pfs).ModifyFile(itertools.chain([_nowhere()], rest), NO_CONTEXT)
    assert list(rest) == []


def test_a_long_stream_is_cut_short(engine_pfs: PfsService) -> None:
    message, sent = _added("/[", 16 << 20), itertools.count()
    endless = (message for _ in sent)
    with pytest.raises(PachError, match="globbing character"):
        Calls(engine_pfs).CreateFileSet(endless, NO_CONTEXT)
    assert 8 < next(sent) < 128


def test_a_client_that_has_gone_is_still_refused(engine_pfs: PfsService) -> None:
    def going() -> Iterator[pfs_pb2.ModifyFileRequest]:
        yield _nowhere()
        raise OSError("gone")

    with pytest.raises(NotFound, match="nowhere"):
        Calls(engine_pfs).ModifyFile(going(), NO_CONTEXT)
