"""The newest commit of a repo's master branch. While it is open it is the lock of the repo, since Pachyderm starts no
other: one waits for its writer, and finishes it if that is gone. Should the writer be alive after all, it notices and
starts again.
"""

import time
from typing import Any

import grpc
from python_pachyderm.proto.v2.pfs import pfs_pb2

from pipelines.client import commit_owner, open_commits
from pipelines.client.open_commits import is_open
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError

LONGEST = 60.0
"""Seconds after which a commit of lookalike's is finished by others who wait for it."""

_LOOK_EVERY = 1.0
_AT_LEAST = 0.01


class BranchHead:
    """The head of the master branch of one repo. `longest`: see LONGEST."""

    def __init__(self, connection: Connection, repo: str, longest: float = LONGEST) -> None:
        self.repo = repo
        self.branch = connection.branch(repo)
        self._connection = connection
        self._longest = longest

    def newest(self) -> str:
        """The id of the newest commit that is not open, "" if there is none. Raises LookalikeError if the repo does not
        exist."""
        info = self._find()
        if info is None:
            self.require_repo()
            return ""
        return str(info.parent_commit.id if is_open(info) else info.commit.id)

    def open(self) -> Any | None:
        """The CommitInfo of the head if it is open."""
        found = self._find()
        return found if is_open(found) else None

    def finish_abandoned(self) -> None:
        """Finishes the open commit of a process that is gone, if there is one: it would hold up everything downstream,
        until somebody writes to this repo again."""
        info = self._connection.retry(self.open)
        owner = None if info is None else commit_owner.read(info.description)
        if owner is not None and owner.gone:
            self._take_over(info, owner)

    def wait(self, info: Any) -> None:
        """Waits until the open head is finished, or finishes it if its writer is gone."""
        owner, began, pause = commit_owner.read(info.description), time.monotonic(), _AT_LEAST
        while True:
            waited = time.monotonic() - began
            if owner is not None and (owner.gone or waited > self._longest):
                self._take_over(info, owner)
                return
            self._connection.waiting(self._reason(info, owner) if waited >= _LOOK_EVERY else "")
            if not is_open(open_commits.find(self._connection, info.commit)):
                return
            time.sleep(pause)
            pause = min(2 * pause, _LOOK_EVERY)

    def require_repo(self) -> None:
        """Raises LookalikeError if the repo does not exist."""
        try:
            self._connection.pfs.InspectRepo(pfs_pb2.InspectRepoRequest(repo=self.branch.repo))
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.NOT_FOUND:
                raise LookalikeError(
                    f"the repo {self.repo} does not exist: create the repos and pipelines with `lookalike deploy`"
                ) from error
            raise

    def _take_over(self, info: Any, owner: commit_owner.CommitOwner) -> None:
        """Finishes a commit, and those of other repos that were started with it, for its owner. One with files is all
        that its description says; an import reads it."""
        if open_commits.of_set(self._connection, info.commit).give_up(info.description, str(owner)):
            self._connection.waiting(
                f"{self.repo}: finished commit {info.commit.id}, which {owner.user} (process {owner.process}) "
                "had left open"
            )

    def _reason(self, info: Any, owner: commit_owner.CommitOwner | None) -> str:
        if owner is not None:
            return f"waiting for {owner.user} (process {owner.process}), who is writing to {self.repo}"
        return (
            f"waiting for commit {info.commit.id} of {self.repo}, which another client has open: nothing can be "
            f"written before that client, or `pachctl finish commit {self.repo}@master`, finishes it; `lookalike "
            f"commits {self.repo}` lists it"
        )

    def _find(self) -> Any | None:
        """The head; None without a branch or a repo."""
        return open_commits.find(self._connection, pfs_pb2.Commit(repo=self.branch.repo, branch=self.branch))
