"""A stream of changes that is refused is read on within limits."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from localpachd.api.pfs_modify import ModifyCalls
from localpachd.api.schema import pfs_pb2
from localpachd.errors import NotFound, PachError
from localpachd.pfs.service import Pfs


class Calls(ModifyCalls):
    """The calls without a server."""

    def __init__(self, pfs: Pfs) -> None:
        self._pfs = pfs


def _nowhere() -> Any:
    repo = pfs_pb2.Repo(name="nowhere", type="user", project=pfs_pb2.Project(name="default"))
    branch = pfs_pb2.Branch(repo=repo, name="master")
    return pfs_pb2.ModifyFileRequest(set_commit=pfs_pb2.Commit(repo=repo, branch=branch))


def _added(path: str, size: int = 1) -> Any:
    request = pfs_pb2.ModifyFileRequest(add_file=pfs_pb2.AddFile(path=path))
    request.add_file.raw.value = bytes(size)
    return request


@pytest.mark.parametrize("more", [0, 1, 1000])
def test_a_refused_client_may_finish_its_stream(engine_pfs: Pfs, more: int) -> None:
    rest = iter([_added("/a")] * more)
    with pytest.raises(NotFound, match="nowhere"):
        Calls(engine_pfs).ModifyFile(itertools.chain([_nowhere()], rest), None)
    assert list(rest) == []


def test_a_long_stream_is_cut_short(engine_pfs: Pfs) -> None:
    message, sent = _added("/[", 16 << 20), itertools.count()
    endless = (message for _ in sent)
    with pytest.raises(PachError, match="globbing character"):
        Calls(engine_pfs).CreateFileSet(endless, None)
    assert 8 < next(sent) < 128


def test_a_client_that_has_gone_is_still_refused(engine_pfs: Pfs) -> None:
    def going() -> Iterator[Any]:
        yield _nowhere()
        raise OSError("gone")

    with pytest.raises(NotFound, match="nowhere"):
        Calls(engine_pfs).ModifyFile(going(), None)
