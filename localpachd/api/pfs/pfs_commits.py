"""The calls about commits and commit sets."""

import time
from collections.abc import Callable, Generator, Iterator
from functools import partial

from localpachd.api.calls.cancellation import CallContext
from localpachd.api.calls.handlers import lists, waits
from localpachd.api.messages import pfs_messages as messages
from localpachd.api.messages.times import nanoseconds
from localpachd.api.pfs.transaction_servicer import TransactionalCalls
from localpachd.api.schema.schema import pfs_pb2, transaction_pb2
from localpachd.errors import PachError
from localpachd.pfs import commit_removal, commit_sets, commits, contents, history, repos
from localpachd.pfs.changes import ChangeFeed, Steps
from localpachd.pfs.files import temporary_filesets
from localpachd.pfs.pfs_entities import FILE_SETS, Branch, Commit, CommitInfo, Repo
from localpachd.pfs.pfs_service import PfsService
from localpachd.storage import paths

_ORIGIN_NAMES = {number: name for name, number in messages.ORIGINS.items()}
_STATES = {
    pfs_pb2.COMMIT_STATE_UNKNOWN: "STARTED",
    pfs_pb2.STARTED: "STARTED",
    pfs_pb2.READY: "READY",
    pfs_pb2.FINISHING: "FINISHING",
    pfs_pb2.FINISHED: "FINISHED",
}

ActivityCheck = Callable[[], bool]
"""Whether the call is still active."""


class CommitCalls:
    """Commits and commit sets of `pfs_v2.API`."""

    _pfs: PfsService
    _write: TransactionalCalls

    def StartCommit(self, request: pfs_pb2.StartCommitRequest, context: CallContext) -> pfs_pb2.Commit:
        started = self._write(context, transaction_pb2.TransactionRequest(start_commit=request))
        assert isinstance(started, pfs_pb2.Commit)
        return started

    def FinishCommit(self, request: pfs_pb2.FinishCommitRequest, context: CallContext) -> None:
        self._write(context, transaction_pb2.TransactionRequest(finish_commit=request))

    def ClearCommit(self, request: pfs_pb2.ClearCommitRequest) -> None:
        commit = messages.to_commit(request.commit)
        self._pfs.transact(lambda txn: commits.clear(txn, commit), frees=True)

    @waits
    def InspectCommit(self, request: pfs_pb2.InspectCommitRequest, context: CallContext) -> Steps[pfs_pb2.CommitInfo]:
        commit = messages.to_commit(request.commit)
        with self._pfs.db.read() as conn:
            virtual = commit.repo.name == FILE_SETS
            found = (
                temporary_filesets.opened(conn, commit, time.time_ns())[0] if virtual else commits.resolve(conn, commit)
            )
        if not virtual:
            found = yield from self._await(found, request.wait, context.is_active)
        yield messages.commit_info(found)

    @lists
    def ListCommit(self, request: pfs_pb2.ListCommitRequest) -> Iterator[pfs_pb2.CommitInfo]:
        repo = _repo(request)
        since, to = _bound(getattr(request, "from"), repo), _bound(request.to, repo)
        for each in (since, to):
            if each is not None and each.repo != repo:
                asked = repo if repo is not None else request.repo.name
                raise PachError(f"`from` and `to` commits need to be from repo {asked}")
        if since is not None and to is None:
            raise PachError("cannot use `from` commit without `to` commit")
        if request.reverse and to is not None:
            raise PachError("cannot use 'Reverse' while also using 'From' or 'To'")
        beyond = nanoseconds(request.started_time) if request.HasField("started_time") else None
        with self._pfs.db.read() as conn:
            if to is None:
                found = history.list_repo(conn, repo, _origin(request), request.reverse, beyond)
            else:
                found = history.list_line(conn, to, since, _origin(request))
            for left, info in enumerate(found, start=-request.number):
                if left == 0 and request.number:
                    return
                yield messages.commit_info(info, contents.size_bound(conn, info))

    @waits
    def SubscribeCommit(
        self, request: pfs_pb2.SubscribeCommitRequest, context: CallContext
    ) -> Steps[pfs_pb2.CommitInfo]:
        repo = messages.to_repo(request.repo)
        since = _bound(getattr(request, "from"), repo)
        if since is not None and since.repo != repo:
            raise PachError(f"the `from` commit needs to be from repo {repo}")
        with self._pfs.db.read() as conn:
            repos.inspect(conn, repo)
            seen = commits.resolve(conn, since).seq if since else 0
        active = context.is_active
        branch, origin = Branch(repo, request.branch), _origin(request)
        until = self._pfs.changes.until
        while (info := (yield from until(partial(self._next, branch, origin, seen), active, {repo}))) is not None:
            seen = info.seq
            yield messages.commit_info((yield from self._await(info, request.state, active)))

    def _next(self, branch: Branch, origin: str, seen: int) -> CommitInfo | None:
        with self._pfs.db.read() as conn:
            return history.next_on(conn, branch, origin, seen)

    @waits
    def InspectCommitSet(
        self, request: pfs_pb2.InspectCommitSetRequest, context: CallContext
    ) -> Steps[pfs_pb2.CommitInfo]:
        with self._pfs.db.read() as conn:
            infos = commit_sets.inspect(conn, messages.to_commit_set(request))
        if not request.wait:
            yield from map(messages.commit_info, infos)
            return
        yield from (messages.commit_info(info) for info in infos if info.finished is not None)
        for info in infos:
            if info.finished is None:
                yield messages.commit_info((yield from self._await(info, pfs_pb2.FINISHED, context.is_active)))

    @lists
    def ListCommitSet(self, request: pfs_pb2.ListCommitSetRequest) -> Iterator[pfs_pb2.CommitSetInfo]:
        with self._pfs.db.read() as conn:
            for id_, infos in commit_sets.list_all(conn, request.project.name):
                yield pfs_pb2.CommitSetInfo(
                    commit_set=pfs_pb2.CommitSet(id=id_), commits=[messages.commit_info(info) for info in infos]
                )

    @lists
    def FindCommits(self, request: pfs_pb2.FindCommitsRequest) -> Iterator[pfs_pb2.FindCommitsResponse]:
        start, path = messages.to_commit(request.start), paths.clean(request.file_path)
        found = 0
        with self._pfs.db.read() as conn:
            for step in history.search(conn, start, path):
                commit = messages.commit(step.commit)
                if step.found:
                    yield pfs_pb2.FindCommitsResponse(found_commit=commit, commits_searched=step.before)
                    found += 1
                    if found == request.limit:
                        break
            yield pfs_pb2.FindCommitsResponse(last_searched_commit=commit, commits_searched=step.before + 1)

    def SquashCommitSet(self, request: pfs_pb2.SquashCommitSetRequest, context: CallContext) -> None:
        self._write(context, transaction_pb2.TransactionRequest(squash_commit_set=request))

    def DropCommitSet(self, request: pfs_pb2.DropCommitSetRequest) -> None:
        doomed = messages.to_commit_set(request)
        self._pfs.transact(lambda txn: commit_removal.drop_set(txn, doomed), frees=True)

    def SquashCommit(self, request: pfs_pb2.SquashCommitRequest) -> None:
        commit = messages.to_commit(request.commit)
        self._pfs.transact(lambda txn: commit_removal.squash(txn, commit, request.recursive), frees=True)

    def DropCommit(self, request: pfs_pb2.DropCommitRequest) -> None:
        commit = messages.to_commit(request.commit)
        self._pfs.transact(lambda txn: commit_removal.drop(txn, commit, request.recursive), frees=True)

    def _await(
        self, info: CommitInfo, state: pfs_pb2.CommitState.ValueType, active: ActivityCheck
    ) -> Generator[ChangeFeed, None, CommitInfo]:
        """The commit once it has reached a state; PachError if it is deleted meanwhile."""

        def look() -> CommitInfo | None:
            with self._pfs.db.read() as conn:
                now = commits.find(conn, info.commit.repo, info.commit.id)
                if now is None:
                    raise PachError(f"commit {info.commit} was deleted")
                return now if history.has_reached(conn, now, _STATES[state]) else None

        concerned = {info.commit.repo, *(each.repo for each in info.provenance)}
        reached = yield from self._pfs.changes.until(look, active, concerned)
        return reached if reached is not None else info


def _origin(request: pfs_pb2.ListCommitRequest | pfs_pb2.SubscribeCommitRequest) -> str:
    """The origin that a request selects; "" for all."""
    return "" if request.all else _ORIGIN_NAMES.get(request.origin_kind, "")


def _repo(request: pfs_pb2.ListCommitRequest) -> Repo | None:
    """The repo whose commits a request lists; None for all repos."""
    if not request.HasField("repo"):
        raise PachError("repo cannot be nil")
    return messages.to_repo(request.repo) if request.repo.name else None


def _bound(message: pfs_pb2.Commit, repo: Repo | None) -> Commit | None:
    """A `from` or `to` commit; None if it has neither id nor branch. Without a repo it is in the request's."""
    if not message.id and not message.branch.name:
        return None
    if repo is not None and not message.repo.name and not message.branch.repo.name:
        return Commit(repo, message.id, message.branch.name)
    return messages.to_commit(message)
