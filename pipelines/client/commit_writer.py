"""Commits on master that lookalike opens, fills and finishes, one writer at a time: of one repo, or of several that
become one commit set, so that pipelines downstream see all of them or none, and run once.

Pachyderm starts no commit while the head of a branch is open, so an open commit is the lock of its repo: its writer can
read the parent, and nothing gets between. It also holds up every pipeline downstream, so it is open for moments only;
all content is uploaded before. Pachyderm adds no content in a transaction, so commits of several repos are started in
one, filled one after the other, and finished in another.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import grpc
from python_pachyderm.proto.v2.pfs import pfs_pb2

from pipelines.client import commit_owner, open_commits
from pipelines.client.branch_head import LONGEST, BranchHead
from pipelines.client.open_commits import OpenCommits, is_open, together
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError

_PREPARATIONS = 3
"""Most times that content is prepared again because others have written meanwhile, before a commit is started."""

ByRepo = Mapping[str, str]
"""Ids of commits, "" for none, or of file sets, by repo."""

FileSetsFactory = Callable[[ByRepo], ByRepo]
"""Gives the file sets to add to commits with these parents."""


class MovedHeadError(LookalikeError):
    """Others have written to a repo since it was read: `newest` is the commit that is its newest now."""

    def __init__(self, repo: str, newest: str) -> None:
        super().__init__(f"others have written to {repo} meanwhile (commit {newest}): nothing was written")
        self.newest = newest


class CommitWriter:
    """The commits on the master branch of one repo, or the commit sets of several. `longest`: see LONGEST."""

    def __init__(self, connection: Connection, *repos: str, longest: float = LONGEST) -> None:
        self._connection = connection
        self._stub = connection.pfs
        self._heads = [BranchHead(connection, repo, longest) for repo in repos]
        self._owner = commit_owner.current_process()

    def make(self, content: FileSetsFactory, description: str = "", onto: ByRepo | None = None) -> str:
        """Makes a commit with the content in each repo, all of one commit set, and returns its id. Waits for other
        writers.

        `content` is called before the commits are started, and again only if others have written meanwhile: at last
        while they are open. If that fails, they are finished without content. description: of the finished commits; by
        default it names this process. onto: the only commits that may be the parents, "" for none.

        Raises MovedHeadError, and leaves no commit, if the newest commit of a repo is not the one of `onto`.
        """
        while True:
            bases, ready = self._prepare(content)
            self._require(bases, onto)
            commits = self._start(description)
            try:
                parents = commits.parents()
                self._require(parents, onto)
                filesets = ready if parents == bases else content(parents)
                if commits.fill(filesets) and commits.finish(description or self._signed()):
                    if commits.there():
                        return commits.id
                    continue
            except MovedHeadError:
                commits.drop(self._signed())
                raise
            except BaseException:
                commits.give_up(self._signed(), self._signed())
                raise
            commits.give_up(self._signed(), self._signed())

    def stage(self, file_set: str) -> Any:
        """Makes a finished commit with a file set's content on the branch `staging`, as a child of the newest commit of
        master, and returns it. No pipeline follows that branch, so it needs no lock; master is moved there later."""
        (head,) = self._heads
        branch, parent = self._connection.branch(head.repo, "staging"), head.newest()
        start = pfs_pb2.StartCommitRequest(branch=branch, description=self._signed())
        if parent:
            start.parent.CopyFrom(pfs_pb2.Commit(repo=branch.repo, branch=head.branch, id=parent))
        commit = self._connection.change(partial(self._stub.StartCommit, start), partial(self._begun, start))
        staged = OpenCommits(self._connection, [commit])
        try:
            staged.fill({head.repo: file_set})
        finally:
            staged.finish(start.description)
        return commit

    def newest(self) -> str:
        """The id of the newest commit of the one repo that is not open, see BranchHead."""
        (head,) = self._heads
        return head.newest()

    def _newest(self) -> dict[str, str]:
        return {head.repo: head.newest() for head in self._heads}

    def _require(self, parents: ByRepo, onto: ByRepo | None) -> None:
        for repo, wanted in (onto or {}).items():
            if parents[repo] != wanted:
                raise MovedHeadError(repo, parents[repo])

    def _prepare(self, content: FileSetsFactory) -> tuple[ByRepo, ByRepo]:
        """The newest commits, and the content on top of them."""
        bases = self._newest()
        for _ in range(_PREPARATIONS):
            ready, newest = content(bases), self._newest()
            if newest == bases:
                break
            bases = newest
        else:
            ready = content(bases)
        return bases, ready

    def _signed(self, description: str = "") -> str:
        """The description of a commit of this process: its owner, then the words, by default the command's."""
        return f"{self._owner} {description or self._connection.doing}".rstrip()

    def _start(self, description: str) -> OpenCommits:
        """New open commits. They have the description that they are to have in the end, after their owner: an import
        finds out by it what it has begun."""
        signed = self._signed(description)
        requests = [pfs_pb2.StartCommitRequest(branch=head.branch, description=signed) for head in self._heads]
        while True:
            try:
                started = together(
                    self._connection, self._stub.StartCommit, requests, partial(self._begun, requests[0])
                )
                return OpenCommits(self._connection, started)
            except grpc.RpcError as error:
                if not self._waited() and "has not been finished" not in str(error.details()):
                    raise  # otherwise it was finished in this moment
            except BaseException:
                self._abandon(signed)
                raise

    def _begun(self, request: Any) -> Any | None:
        """The open commit of the branch and with the description of this request, which has made it."""
        info = open_commits.find(self._connection, pfs_pb2.Commit(repo=request.branch.repo, branch=request.branch))
        return info.commit if info is not None and is_open(info) and info.description == request.description else None

    def _waited(self) -> bool:
        """Waits for the repos that are open; False if none is. Raises LookalikeError if one does not exist."""
        for head in self._heads:
            if (info := head.open()) is not None:
                head.wait(info)
                return True
            head.require_repo()
        return False

    def _abandon(self, signed: str) -> None:
        """Finishes the heads if they are open and have this description: of a start that was interrupted, nobody knows
        the commits."""
        commits = [info.commit for head in self._heads if (info := head.open()) and info.description == signed]
        if commits:
            OpenCommits(self._connection, commits).give_up(self._signed(), self._signed())
