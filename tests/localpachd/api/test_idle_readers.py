"""Clients that do not read on: whatever they asked for, the log of the database's changes does not grow meanwhile."""

import ast
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc

import localpachd
from tests.servers import StartPachd

FILES = 2500
LIST = f"/{'directory' * 20}/{'directory' * 20}"
REPO = pfs_pb2.Repo(name="read", type="user", project=pfs_pb2.Project(name="default"))
MASTER = pfs_pb2.Commit(repo=REPO, branch=pfs_pb2.Branch(repo=REPO, name="master"))
Call = Callable[[Any], Iterator[Any]]
"""A call of a stub of `pfs_v2.API`."""


class _Filled:
    """A server with a repo of many files and commits, and the size of its log of changes."""

    def __init__(self, server: Any, root: Path) -> None:
        self.address = server.address.removeprefix("grpc://")
        self.client = server.client()
        self.log = root / "pachd.sqlite-wal"
        self._repos = 0
        self.client.create_repo("read")
        with self.client.modify_file_client(("read", "master")) as writer:
            for number in range(FILES):
                writer.put_file_from_bytes(f"{LIST}/{number:05}", b"%d" % number)
            writer.put_file_from_bytes("/big", os.urandom(8 << 20))
        for number in range(100):
            with self.client.commit("read", "master", description="x" * 20_000) as commit:
                self.client.put_file_bytes(commit, f"/small/{number}", b"x")
        self.before = self.grow()

    def grow(self) -> int:
        """The size of the log in bytes after many changes of 20 kB, twice as many as it takes to begin anew."""
        for _ in range(200):
            self._repos += 1
            self.client.create_repo(f"repo-{self._repos}", "x" * 20_000)
        return self.log.stat().st_size


@pytest.fixture(scope="module")
def filled(start_shared_pachd: StartPachd, tmp_path_factory: pytest.TempPathFactory) -> _Filled:
    root = tmp_path_factory.mktemp("idle") / "root"
    return _Filled(start_shared_pachd(root), root)


def _file(path: str) -> pfs_pb2.File:
    return pfs_pb2.File(commit=MASTER, path=path)


CALLS: dict[str, Call] = {
    "GetFile": lambda stub: stub.GetFile(pfs_pb2.GetFileRequest(file=_file("/big"))),
    "GetFileTAR": lambda stub: stub.GetFileTAR(pfs_pb2.GetFileRequest(file=_file("/"))),
    "ListFile": lambda stub: stub.ListFile(pfs_pb2.ListFileRequest(file=_file(LIST))),
    "WalkFile": lambda stub: stub.WalkFile(pfs_pb2.WalkFileRequest(file=_file("/"))),
    "GlobFile": lambda stub: stub.GlobFile(pfs_pb2.GlobFileRequest(commit=MASTER, pattern="/**")),
    "DiffFile": lambda stub: stub.DiffFile(
        pfs_pb2.DiffFileRequest(new_file=_file("/"), old_file=pfs_pb2.File(commit=_first(stub), path="/small"))
    ),
    "ListCommit": lambda stub: stub.ListCommit(pfs_pb2.ListCommitRequest(repo=REPO)),
    "ListRepo": lambda stub: stub.ListRepo(pfs_pb2.ListRepoRequest(type="user")),
}


def _first(stub: Any) -> pfs_pb2.Commit:
    """The first commit of the repo."""
    *_, oldest = stub.ListCommit(pfs_pb2.ListCommitRequest(repo=REPO))
    found: pfs_pb2.Commit = oldest.commit
    return found


def test_the_log_shrinks_while_clients_do_not_read_on(filled: _Filled) -> None:
    with grpc.insecure_channel(filled.address) as channel:
        stub = pfs_pb2_grpc.APIStub(channel)
        whole = {name: sum(each.ByteSize() for each in call(stub)) for name, call in CALLS.items()}
        assert min(whole.values()) > 1 << 20, whole  # more than the buffers between server and client hold
        unread = {name: call(stub) for name, call in CALLS.items()}
        got = {name: next(replies).ByteSize() for name, replies in unread.items()}
        assert filled.grow() < filled.before + (1 << 20)
        for name, replies in unread.items():
            got[name] += sum(each.ByteSize() for each in replies)
    assert got == whole


def test_nothing_waits_for_a_client_within_a_snapshot() -> None:
    """Looks at the source: a generator of replies that holds a snapshot is marked as one that is collected first."""
    root = Path(localpachd.__file__).parent
    found = {
        f"{path.relative_to(root)}:{function.name}"
        for path in sorted(root.rglob("*.py"))
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef) and _yields_in_snapshot(function) and not _collected(function)
    }
    # These yield to methods that are marked.
    assert found == {
        "api/pfs/pfs_servicer.py:_commits",
        "api/pfs/pfs_servicer.py:_branches",
        "pps/job_reader.py:list_all",
    }


def _yields_in_snapshot(function: ast.FunctionDef) -> bool:
    return any(
        isinstance(inner, (ast.Yield, ast.YieldFrom))
        for block in ast.walk(function)
        if isinstance(block, ast.With) and any(".read()" in ast.unparse(item) for item in block.items)
        for inner in ast.walk(block)
    )


def _collected(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(each) == "lists" for each in function.decorator_list)
