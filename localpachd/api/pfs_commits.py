"""The calls about commits and commit sets."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from localpachd.api import pfs_messages as messages
from localpachd.api.schema import Empty, pfs_pb2
from localpachd.api.times import nanoseconds
from localpachd.errors import NotFound, PachError
from localpachd.pfs import commit_sets, commits, repos
from localpachd.pfs.service import Pfs
from localpachd.pfs.values import Branch, Commit, CommitInfo

_ORIGIN_NAMES = {number: name for name, number in messages.ORIGINS.items()}


class CommitCalls:
    """Commits and commit sets of `pfs_v2.API`."""

    _pfs: Pfs

    def StartCommit(self, request: Any, context: Any) -> Any:
        branch = messages.to_branch(request.branch)
        parent = None
        if request.HasField("parent"):
            named = request.parent
            parent = Commit(branch.repo, named.id, named.branch.name or ("" if named.id else branch.name))
        made = self._pfs.transact(lambda txn: commits.start(txn, branch, parent, request.description))
        return messages.commit(made)

    def FinishCommit(self, request: Any, context: Any) -> Any:
        commit = messages.to_commit(request.commit)
        self._pfs.transact(
            lambda txn: commits.finish_by_user(txn, commit, request.error, request.description, request.force)
        )
        return Empty()

    def ClearCommit(self, request: Any, context: Any) -> Any:
        self._pfs.transact(lambda txn: commits.clear(txn, messages.to_commit(request.commit)))
        return Empty()

    def InspectCommit(self, request: Any, context: Any) -> Any:
        found = self._resolve(messages.to_commit(request.commit))
        return messages.commit_info(self._await(found, request.wait, context))

    def ListCommit(self, request: Any, context: Any) -> Iterator[Any]:
        left = request.number or None
        for info in self._selected(request):
            if left is not None:
                if left == 0:
                    return
                left -= 1
            yield messages.commit_info(info)

    def _selected(self, request: Any) -> Iterator[CommitInfo]:
        repo = messages.to_repo(request.repo)
        origin = "" if request.all else _ORIGIN_NAMES.get(request.origin_kind, "")
        before = nanoseconds(request.started_time) if request.HasField("started_time") else None
        since, to = _bound(request, "from"), _bound(request, "to")
        for each in (since, to):
            if each is not None and each.repo != repo:
                raise PachError(f"`from` and `to` commits need to be from repo {repo}")
        if since is not None and to is None:
            raise PachError("cannot use `from` commit without `to` commit")
        if request.reverse and (since is not None or to is not None):
            raise PachError("cannot use 'Reverse' while also using 'From' or 'To'")
        with self._pfs.db.read() as conn:
            if to is None:
                yield from commits.list_repo(conn, repo, origin, request.reverse, before)
            else:
                yield from commits.list_line(conn, to, since, origin)

    def SubscribeCommit(self, request: Any, context: Any) -> Iterator[Any]:
        repo = messages.to_repo(request.repo)
        origin = "" if request.all else _ORIGIN_NAMES.get(request.origin_kind, "")
        with self._pfs.db.read() as conn:
            repos.inspect(conn, repo)
            since = _bound(request, "from")
            seen = commits.resolve(conn, since).seq if since else 0
        while context.is_active():
            info = self._waiting(context, partial(self._next, repo, request.branch, origin, seen))
            if info is None:
                return
            seen = info.seq
            yield messages.commit_info(self._await(info, request.state, context))

    def _next(self, repo: Any, branch: str, origin: str, seen: int) -> CommitInfo | None:
        with self._pfs.db.read() as conn:
            return commits.next_on(conn, Branch(repo, branch), origin, seen)

    def InspectCommitSet(self, request: Any, context: Any) -> Iterator[Any]:
        with self._pfs.db.read() as conn:
            infos = commit_sets.inspect(conn, request.commit_set.id)
        if not request.wait:
            yield from map(messages.commit_info, infos)
            return
        yield from (messages.commit_info(info) for info in infos if info.finished is not None)
        for info in infos:
            if info.finished is None:
                yield messages.commit_info(self._await(info, pfs_pb2.FINISHED, context))

    def ListCommitSet(self, request: Any, context: Any) -> Iterator[Any]:
        with self._pfs.db.read() as conn:
            for id_, infos in commit_sets.list_all(conn, request.project.name):
                yield pfs_pb2.CommitSetInfo(
                    commit_set=pfs_pb2.CommitSet(id=id_), commits=[messages.commit_info(info) for info in infos]
                )

    def _resolve(self, commit: Commit) -> CommitInfo:
        with self._pfs.db.read() as conn:
            return commits.resolve(conn, commit)

    def _await(self, info: CommitInfo, state: int, context: Any) -> CommitInfo:
        """The commit once it has reached a state; NotFound when it is deleted meanwhile."""

        def look() -> CommitInfo | None:
            with self._pfs.db.read() as conn:
                now = commits.find(conn, info.commit.repo, info.commit.id)
                if now is None:
                    raise NotFound(f"commit {info.commit} not found")
                return now if commits.has_reached(conn, now, _STATES[state]) else None

        reached = self._waiting(context, look)
        return reached if reached is not None else info

    def _waiting(self, context: Any, look: Callable[[], CommitInfo | None]) -> CommitInfo | None:
        context.add_callback(self._pfs.changes.notify)
        return self._pfs.changes.wait_for(look, context.is_active)


_STATES = {
    pfs_pb2.COMMIT_STATE_UNKNOWN: "STARTED",
    pfs_pb2.STARTED: "STARTED",
    pfs_pb2.READY: "READY",
    pfs_pb2.FINISHING: "FINISHING",
    pfs_pb2.FINISHED: "FINISHED",
}


def _bound(request: Any, field: str) -> Commit | None:
    """A `from` or `to` commit (the first is a keyword of Python's); one without id and branch counts as absent."""
    if not request.HasField(field):
        return None
    message = getattr(request, field)
    if not message.id and not message.branch.name:
        return None
    return (
        messages.to_commit(message)
        if message.repo.name or message.branch.repo.name
        else Commit(messages.to_repo(request.repo), message.id, message.branch.name)
    )
