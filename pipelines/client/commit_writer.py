"""Commits on master that lookalike opens, fills and finishes, one writer at a time.

Pachyderm starts no commit while the head of a branch is open, so an open commit is the lock of its repo: its writer can
read the parent, and nothing gets between. It also holds up every pipeline downstream, so it is open for moments only;
all content is uploaded before. A commit gets its content in one call. So whoever finds one whose writer is gone
finishes it: it holds the whole of that write or nothing of it, and what others have put into it in the meantime stays.
Should the writer be alive after all, it notices and starts again.
"""

import time
from collections.abc import Callable
from typing import Any

import grpc
from python_pachyderm.proto.v2.pfs import pfs_pb2

from pipelines.client import commit_owner
from pipelines.client.server.connection import Connection
from pipelines.client.server.grpc_errors import suppress_not_found
from pipelines.errors import LookalikeError

LONGEST = 60.0
"""Seconds after which a commit of lookalike's is finished by others who wait for it."""

_LOOK_EVERY = 1.0
_AT_LEAST = 0.01

_PREPARATIONS = 3
"""Most times that content is prepared again because others have written meanwhile, before a commit is started."""

FileSetFactory = Callable[[str], str]
"""Gives the file set to add to a commit with this parent; "" stands for no parent."""


class MovedHeadError(LookalikeError):
    """Others have written to a repo since it was read: `newest` is the commit that is its newest now."""

    def __init__(self, repo: str, newest: str) -> None:
        super().__init__(f"others have written to {repo} meanwhile (commit {newest}): nothing was written")
        self.newest = newest


class CommitWriter:
    """The commits on the master branch of one repo. `longest`: see LONGEST."""

    def __init__(self, connection: Connection, repo: str, longest: float = LONGEST) -> None:
        self._connection = connection
        self._stub = connection.pfs
        self._repo = connection.repo(repo)
        self._branch = connection.branch(repo)
        self._longest = longest
        self._owner = commit_owner.current_process()

    def make(self, content: FileSetFactory, description: str = "", onto: str | None = None) -> str:
        """Makes one commit with the content and returns its id. Waits for other writers.

        `content` is called before the commit is started, and again only if others have written meanwhile: at last while
        the commit is open. If that fails, the commit is finished without content. description: of the finished commit;
        by default it names this process. onto: the only commit that may be its parent, "" for none.

        Raises MovedHeadError, and leaves no commit, if the newest commit is not `onto`.
        """
        while True:
            base, ready = self._prepare(content)
            self._require(base, onto)
            commit = self._start(description)
            add = pfs_pb2.AddFileSetRequest(commit=commit)
            try:
                parent = str(self._connection.inspect(commit).parent_commit.id)
                self._require(parent, onto)
                add.file_set_id = ready if parent == base else content(parent)
                if self._while_open(self._stub.AddFileSet, add):
                    self._finish(commit, description)
                    if self._found(commit):
                        return str(commit.id)
            except MovedHeadError:
                self._stub.DropCommitSet(pfs_pb2.DropCommitSetRequest(commit_set=pfs_pb2.CommitSet(id=commit.id)))
                raise
            except BaseException:
                self._finish(commit)
                raise

    def stage(self, file_set: str) -> Any:
        """Makes a finished commit with a file set's content on the branch `staging`, as a child of the newest commit of
        master, and returns it. No pipeline follows that branch, so it needs no lock; master is moved there later."""
        branch, parent = self._connection.branch(self._repo.name, "staging"), self.newest()
        start = pfs_pb2.StartCommitRequest(branch=branch, description=self._signed())
        if parent:
            start.parent.CopyFrom(pfs_pb2.Commit(repo=self._repo, branch=self._branch, id=parent))
        commit = self._connection.change(lambda: self._stub.StartCommit(start), lambda: self._begun(start))
        try:
            add = pfs_pb2.AddFileSetRequest(commit=commit, file_set_id=file_set)
            self._connection.change(lambda: self._stub.AddFileSet(add))
        finally:
            self._finish(commit, start.description)
        return commit

    def finish_abandoned(self) -> None:
        """Finishes the open commit of a process that is gone, if there is one: it would hold up everything downstream,
        until somebody writes to this repo again."""
        head = self._connection.retry(self._open_head)
        owner = None if head is None else commit_owner.read(head.description)
        if owner is not None and owner.gone:
            self._take_over(head, owner)

    def newest(self) -> str:
        """The id of the newest commit that is not open, "" if there is none. Raises LookalikeError if the repo does not
        exist."""
        info = self._head()
        if info is None:
            self._must_exist()
            return ""
        return str(info.parent_commit.id if _is_open(info) else info.commit.id)

    def _require(self, parent: str, onto: str | None) -> None:
        if onto not in (None, parent):
            raise MovedHeadError(self._repo.name, parent)

    def _prepare(self, content: FileSetFactory) -> tuple[str, str]:
        """The newest commit, and the content on top of it."""
        base = self.newest()
        for _ in range(_PREPARATIONS):
            ready, newest = content(base), self.newest()
            if newest == base:
                break
            base = newest
        else:
            ready = content(base)
        return base, ready

    def _while_open(self, call: Callable[[Any], object], request: Any) -> bool:
        """Makes a call about an open commit, which may be made twice; False if the commit is closed or deleted
        already."""
        try:
            self._connection.change(lambda: call(request))
        except grpc.RpcError:
            info = self._found(request.commit)
            if _is_open(info):
                raise
            return False
        return True

    def _finish(self, commit: Any, description: str = "") -> bool:
        """Finishes an open commit, by default with this process as its description; False as from `_while_open`."""
        request = pfs_pb2.FinishCommitRequest(commit=commit, description=description or self._signed())
        return self._while_open(self._stub.FinishCommit, request)

    def _signed(self, description: str = "") -> str:
        """The description of a commit of this process: its owner, then the words, by default the command's."""
        return f"{self._owner} {description or self._connection.doing}".rstrip()

    def _start(self, description: str) -> Any:
        """A new open commit. It has the description that it is to have in the end, after its owner: an import finds out
        by it what it has begun."""
        request = pfs_pb2.StartCommitRequest(branch=self._branch, description=self._signed(description))
        while True:
            try:
                return self._connection.change(lambda: self._stub.StartCommit(request), lambda: self._begun(request))
            except grpc.RpcError as error:
                head = self._head()
                if head is None:
                    self._must_exist()
                    raise
                if _is_open(head):
                    self._wait(head)
                elif "has not been finished" not in str(error.details()):  # or it was finished in this moment
                    raise
            except BaseException:
                self._abandon(request.description)
                raise

    def _begun(self, request: Any) -> Any | None:
        """The commit that a start has made, although its answer was an error."""
        head = self._found(pfs_pb2.Commit(repo=self._repo, branch=request.branch))
        if head is None or head.HasField("finishing") or head.description != request.description:
            return None
        return head.commit

    def _abandon(self, description: str) -> None:
        """Finishes the head if it is open and has this description: of a start that was interrupted, nobody knows the
        commit."""
        head = self._open_head()
        if head is not None and head.description == description:
            self._finish(head.commit)

    def _wait(self, head: Any) -> None:
        """Waits until the open head is finished, or finishes it if its writer is gone."""
        owner, began, pause = commit_owner.read(head.description), time.monotonic(), _AT_LEAST
        while True:
            waited = time.monotonic() - began
            if owner is not None and (owner.gone or waited > self._longest):
                self._take_over(head, owner)
                return
            self._connection.waiting(self._reason(head, owner) if waited >= _LOOK_EVERY else "")
            info = self._found(head.commit)
            if not _is_open(info):
                return
            time.sleep(pause)
            pause = min(2 * pause, _LOOK_EVERY)

    def _take_over(self, head: Any, owner: commit_owner.CommitOwner) -> None:
        """Finishes a commit for its owner. One with files is all that its description says; an import reads it."""
        if self._finish(head.commit, head.description if self._holds_change(head) else str(owner)):
            self._connection.waiting(
                f"{self._repo.name}: finished commit {head.commit.id}, which {owner.user} (process {owner.process}) "
                "had left open"
            )

    def _reason(self, head: Any, owner: commit_owner.CommitOwner | None) -> str:
        if owner is not None:
            return f"waiting for {owner.user} (process {owner.process}), who is writing to {self._repo.name}"
        return (
            f"waiting for commit {head.commit.id} of {self._repo.name}, which another client has open: nothing can be "
            f"written before that client, or `pachctl finish commit {self._repo.name}@master`, finishes it; `lookalike "
            f"commits {self._repo.name}` lists it"
        )

    def _holds_change(self, head: Any) -> bool:
        if head.HasField("parent_commit"):
            self._connection.inspect(head.parent_commit, pfs_pb2.FINISHED)  # no difference is known before
        call = self._stub.DiffFile(pfs_pb2.DiffFileRequest(new_file=pfs_pb2.File(commit=head.commit, path="/")))
        try:
            return next(iter(call), None) is not None
        finally:
            call.cancel()

    def _head(self) -> Any | None:
        """The head of master; None without a branch or a repo."""
        return self._found(pfs_pb2.Commit(repo=self._repo, branch=self._branch))

    def _open_head(self) -> Any | None:
        """The head of master if it is open."""
        head = self._head()
        return head if _is_open(head) else None

    def _found(self, commit: Any) -> Any | None:
        with suppress_not_found():
            return self._connection.inspect(commit)
        return None

    def _must_exist(self) -> None:
        try:
            self._stub.InspectRepo(pfs_pb2.InspectRepoRequest(repo=self._repo))
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.NOT_FOUND:
                raise LookalikeError(
                    f"the repo {self._repo.name} does not exist: create the repos and pipelines with `lookalike deploy`"
                ) from error
            raise


def _is_open(info: Any | None) -> bool:
    """Whether a commit exists and is not closed."""
    return info is not None and not info.HasField("finishing")
