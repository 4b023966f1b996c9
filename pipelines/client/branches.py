"""Branches beside master, by which commits are chosen: read, made and moved."""

from collections.abc import Sequence

from python_pachyderm.proto.v2.pfs import pfs_pb2

from pipelines.client.server.connection import Connection
from pipelines.client.server.grpc_errors import suppress_not_found


def move(connection: Connection, repo: str, branch: str, commit: str, metadata: Sequence[tuple[str, str]] = ()) -> None:
    """Makes a branch of a repo at a commit, or moves it there; a trigger that it has stays. metadata: of a
    transaction."""
    at = connection.commit(repo, commit)
    asked = pfs_pb2.CreateBranchRequest(branch=connection.branch(repo, branch), head=at)
    connection.pfs.CreateBranch(asked, metadata=metadata)


def head(connection: Connection, repo: str, branch: str) -> str:
    """The id of the commit that a branch is at, "" if the repo or the branch does not exist."""
    asked = pfs_pb2.InspectBranchRequest(branch=connection.branch(repo, branch))
    with suppress_not_found():
        return str(connection.pfs.InspectBranch(asked).head.id)
    return ""
