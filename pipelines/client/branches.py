"""Branches beside master, by which commits are chosen: read, made and moved."""

from collections.abc import Sequence

import grpc
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc

from pipelines.client.server.connection import Connection


def move(connection: Connection, repo: str, branch: str, commit: str, metadata: Sequence[tuple[str, str]] = ()) -> None:
    """Makes a branch of a repo at a commit, or moves it there; a trigger that it has stays. metadata: of a
    transaction."""
    of = pfs_pb2.Repo(name=repo, type="user", project=pfs_pb2.Project(name=connection.project))
    at = pfs_pb2.Commit(repo=of, branch=pfs_pb2.Branch(repo=of), id=commit)
    asked = pfs_pb2.CreateBranchRequest(branch=pfs_pb2.Branch(repo=of, name=branch), head=at)
    pfs_pb2_grpc.APIStub(connection.client._channel).CreateBranch(asked, metadata=metadata)


def head(connection: Connection, repo: str, branch: str) -> str:
    """The id of the commit that a branch is at, "" if the repo or the branch does not exist."""
    of = pfs_pb2.Repo(name=repo, type="user", project=pfs_pb2.Project(name=connection.project))
    asked = pfs_pb2.InspectBranchRequest(branch=pfs_pb2.Branch(repo=of, name=branch))
    try:
        return str(pfs_pb2_grpc.APIStub(connection.client._channel).InspectBranch(asked).head.id)
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.NOT_FOUND:
            return ""
        raise
