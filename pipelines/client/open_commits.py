"""The open commits of one commit set, each on the master branch of its repo: filled, and finished together.

While a commit is open it holds up its repo and every pipeline downstream, so these are open for moments only. Each gets
its content in one call, one after the other. So whoever finds some whose writer is gone finishes them: with all of that
write or, if a part is missing, with nothing of it.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import grpc
from python_pachyderm.proto.v2.pfs import pfs_pb2

from pipelines.client.server.connection import Connection
from pipelines.client.server.grpc_errors import suppress_not_found
from pipelines.client.transactions import transaction


class OpenCommits:
    """The commits that a writer has started by one call or in one transaction."""

    def __init__(self, connection: Connection, commits: Sequence[Any]) -> None:
        self._connection = connection
        self._stub = connection.pfs
        self._commits = commits

    @property
    def id(self) -> str:
        """The id of their commit set."""
        return str(self._commits[0].id)

    def parents(self) -> dict[str, str]:
        """The commit below each, by repo; "" for none."""
        return {each.repo.name: str(self._connection.inspect(each).parent_commit.id) for each in self._commits}

    def fill(self, filesets: Mapping[str, str]) -> bool:
        """Adds a file set to each, by repo; False if somebody else has finished or deleted one of them."""
        for commit in self._commits:
            add = pfs_pb2.AddFileSetRequest(commit=commit, file_set_id=filesets[commit.repo.name])
            if not self._while_open(partial(self._connection.change, partial(self._stub.AddFileSet, add))):
                return False
        return True

    def finish(self, description: str) -> bool:
        """Finishes all of them at once; False, and none is finished, if somebody else has finished or deleted one."""
        return self._while_open(partial(self._finish, description))

    def there(self) -> bool:
        """Whether nobody has deleted any."""
        return all(find(self._connection, each) is not None for each in self._commits)

    def give_up(self, description: str, otherwise: str) -> bool:
        """Finishes those that are open: with their content and the description if each of the set has some, and else
        without any, and with the other description. False if there was nothing to finish, or if another client did."""
        infos = [info for each in self._commits if (info := find(self._connection, each)) is not None]
        pending = OpenCommits(self._connection, [info.commit for info in infos if is_open(info)])
        if not pending._commits:
            return False
        changed = [info.commit for info in infos if self._holds_change(info)]
        if len(changed) == len(self._commits):
            return pending.finish(description)
        clear = [pfs_pb2.ClearCommitRequest(commit=each) for each in pending._commits if each in changed]
        calls = (partial(self._connection.change, partial(self._stub.ClearCommit, each)) for each in clear)
        return all(map(pending._while_open, calls)) and pending.finish(otherwise)

    def drop(self, otherwise: str) -> None:
        """Deletes all of them; finishes them, with a description, if others have built on them already."""
        try:
            self._stub.DropCommitSet(pfs_pb2.DropCommitSetRequest(commit_set=pfs_pb2.CommitSet(id=self.id)))
        except grpc.RpcError:
            self.finish(otherwise)

    def _finish(self, description: str) -> None:
        requests = [pfs_pb2.FinishCommitRequest(commit=each, description=description) for each in self._commits]
        together(self._connection, self._stub.FinishCommit, requests, self._finished)

    def _finished(self) -> bool | None:
        """True if all of them are there and finished: whoever else did that has left their content as it is."""
        infos = [find(self._connection, each) for each in self._commits]
        return True if all(info is not None and not is_open(info) for info in infos) else None

    def _while_open(self, call: Callable[[], object]) -> bool:
        """Makes a call about the commits; False if somebody else has finished or deleted one of them."""
        try:
            call()
        except grpc.RpcError:
            if all(is_open(find(self._connection, each)) for each in self._commits):
                raise
            return False
        return True

    def _holds_change(self, info: Any) -> bool:
        if info.HasField("parent_commit"):
            self._connection.inspect(info.parent_commit, pfs_pb2.FINISHED)  # no difference is known before
        call = self._stub.DiffFile(pfs_pb2.DiffFileRequest(new_file=pfs_pb2.File(commit=info.commit, path="/")))
        try:
            return next(iter(call), None) is not None
        finally:
            call.cancel()


def of_set(connection: Connection, commit: Any) -> OpenCommits:
    """All commits that were started with one, by its writer and not by Pachyderm."""
    asked = pfs_pb2.InspectCommitSetRequest(commit_set=pfs_pb2.CommitSet(id=commit.id))
    infos = connection.pfs.InspectCommitSet(asked)
    return OpenCommits(connection, [info.commit for info in infos if info.origin.kind == pfs_pb2.USER])


def together(
    connection: Connection,
    call: Callable[..., Any],
    requests: Sequence[Any],
    happened: Callable[[], Any | None] = lambda: None,
) -> list[Any]:
    """The replies to calls that take effect at once, or not at all. happened: the reply to one that stands alone, if it
    has taken effect although the answer was an error, see Connection.change."""
    if len(requests) == 1:
        return [connection.change(partial(call, requests[0]), happened)]
    with transaction(connection) as begun:
        return [begun.add(call, each) for each in requests]


def find(connection: Connection, commit: Any) -> Any | None:
    """The CommitInfo of a commit; None if there is none."""
    with suppress_not_found():
        return connection.inspect(commit)
    return None


def is_open(info: Any | None) -> bool:
    """Whether a commit exists and is not closed."""
    return info is not None and not info.HasField("finishing")
