"""The calls that walk the provenance graph, and the call that forgets the content of a commit in it."""

import sqlite3
from collections.abc import Callable, Iterator

import grpc

from localpachd.api.calls.handlers import lists
from localpachd.api.messages import pfs_messages as messages
from localpachd.api.messages import pickers
from localpachd.api.schema.schema import pfs_pb2
from localpachd.pfs import branches, commits, lookup, walks
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.upkeep import content_removal

GraphWalk = Callable[[sqlite3.Connection, int, int, int], list[int]]
"""The rows of the commits or branches that a walk finds from a start, up to a depth and a number."""


class WalkCalls:
    """The four walks and ForgetCommit of `pfs_v2.API`."""

    _pfs: PfsService

    @lists
    def WalkCommitProvenance(
        self, request: pfs_pb2.WalkCommitProvenanceRequest, context: grpc.ServicerContext
    ) -> Iterator[pfs_pb2.CommitInfo]:
        yield from self._commits(request, walks.above_commit)

    @lists
    def WalkCommitSubvenance(
        self, request: pfs_pb2.WalkCommitSubvenanceRequest, context: grpc.ServicerContext
    ) -> Iterator[pfs_pb2.CommitInfo]:
        yield from self._commits(request, walks.below_commit)

    @lists
    def WalkBranchProvenance(
        self, request: pfs_pb2.WalkBranchProvenanceRequest, context: grpc.ServicerContext
    ) -> Iterator[pfs_pb2.BranchInfo]:
        yield from self._branches(request, walks.above_branch)

    @lists
    def WalkBranchSubvenance(
        self, request: pfs_pb2.WalkBranchSubvenanceRequest, context: grpc.ServicerContext
    ) -> Iterator[pfs_pb2.BranchInfo]:
        yield from self._branches(request, walks.below_branch)

    def ForgetCommit(
        self, request: pfs_pb2.ForgetCommitRequest, context: grpc.ServicerContext
    ) -> pfs_pb2.ForgetCommitResponse:
        self._pfs.transact(
            lambda txn: content_removal.forget(txn, pickers.commit(txn.conn, request.commit)), frees=True
        )
        return pfs_pb2.ForgetCommitResponse()

    def _commits(
        self, request: pfs_pb2.WalkCommitProvenanceRequest | pfs_pb2.WalkCommitSubvenanceRequest, walk: GraphWalk
    ) -> Iterator[pfs_pb2.CommitInfo]:
        depth, most = request.max_depth or walks.MAX_DEPTH, request.max_commits or walks.MAX_FOUND
        with self._pfs.db.read() as conn:
            for start in [pickers.commit(conn, each).seq for each in request.start]:
                for seq in walk(conn, start, depth, most):
                    yield messages.commit_info(commits.by_seq(conn, seq))

    def _branches(
        self, request: pfs_pb2.WalkBranchProvenanceRequest | pfs_pb2.WalkBranchSubvenanceRequest, walk: GraphWalk
    ) -> Iterator[pfs_pb2.BranchInfo]:
        depth, most = request.max_depth or walks.MAX_DEPTH, request.max_branches or walks.MAX_FOUND
        with self._pfs.db.read() as conn:
            for start in [lookup.branch_row(conn, pickers.branch(each))["id"] for each in request.start]:
                for row in walk(conn, start, depth, most):
                    yield messages.branch_info(branches.inspect(conn, lookup.branch_by_id(conn, row)))
