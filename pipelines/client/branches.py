"""Branches beside master, by which commits are chosen: read, made and moved."""

from python_pachyderm.proto.v2.pfs import pfs_pb2

from pipelines.client.server.connection import Connection
from pipelines.client.server.grpc_errors import suppress_not_found
from pipelines.client.transactions import OpenTransaction


def move(connection: Connection, repo: str, branch: str, commit: str, within: OpenTransaction | None = None) -> None:
    """Makes a branch of a repo at a commit, or moves it there, at the end of a transaction if it is within one; a
    trigger that it has stays."""
    at = connection.commit(repo, commit)
    asked = pfs_pb2.CreateBranchRequest(branch=connection.branch(repo, branch), head=at)
    if within is None:
        connection.change(lambda: connection.pfs.CreateBranch(asked))
    else:
        within.add(connection.pfs.CreateBranch, asked)


def head(connection: Connection, repo: str, branch: str) -> str:
    """The id of the commit that a branch is at, "" if the repo or the branch does not exist."""
    asked = pfs_pb2.InspectBranchRequest(branch=connection.branch(repo, branch))
    with suppress_not_found():
        return str(connection.pfs.InspectBranch(asked).head.id)
    return ""
