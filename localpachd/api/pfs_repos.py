"""The calls about projects, repos and branches."""

from collections.abc import Iterator
from typing import Any

from localpachd.api import pfs_messages as messages
from localpachd.api.schema import Empty, pfs_pb2
from localpachd.errors import InvalidArgument, Unimplemented
from localpachd.pfs import branches, projects, repos
from localpachd.pfs.service import Pfs


class RepoCalls:
    """Projects, repos and branches of `pfs_v2.API`."""

    _pfs: Pfs

    def CreateProject(self, request: Any, context: Any) -> Any:
        self._pfs.transact(lambda txn: projects.create(txn, request.project.name, request.description, request.update))
        return Empty()

    def InspectProject(self, request: Any, context: Any) -> Any:
        with self._pfs.db.read() as conn:
            return messages.project_info(projects.inspect(conn, request.project.name))

    def ListProject(self, request: Any, context: Any) -> Iterator[Any]:
        with self._pfs.db.read() as conn:
            yield from map(messages.project_info, projects.list_all(conn))

    def DeleteProject(self, request: Any, context: Any) -> Any:
        self._pfs.transact(lambda txn: projects.delete(txn, request.project.name))
        return Empty()

    def CreateRepo(self, request: Any, context: Any) -> Any:
        repo = messages.to_repo(request.repo)
        self._pfs.transact(lambda txn: repos.create(txn, repo, request.description, request.update))
        return Empty()

    def InspectRepo(self, request: Any, context: Any) -> Any:
        with self._pfs.db.read() as conn:
            return messages.repo_info(repos.inspect(conn, messages.to_repo(request.repo)), details=True)

    def ListRepo(self, request: Any, context: Any) -> Iterator[Any]:
        wanted = {project.name for project in request.projects}
        with self._pfs.db.read() as conn:
            for info in repos.list_all(conn, request.type, wanted):
                yield messages.repo_info(info, details=False)

    def DeleteRepo(self, request: Any, context: Any) -> Any:
        if not request.HasField("repo"):
            raise InvalidArgument("no repo specified")
        repo = messages.to_repo(request.repo)
        self._pfs.transact(lambda txn: repos.delete_by_user(txn, repo, request.force))
        return Empty()

    def DeleteRepos(self, request: Any, context: Any) -> Any:
        wanted = {project.name for project in request.projects}
        if not wanted and not request.all:
            return pfs_pb2.DeleteReposResponse()
        gone = self._pfs.transact(lambda txn: repos.delete_many(txn, () if request.all else wanted))
        return pfs_pb2.DeleteReposResponse(repos=[messages.repo(each) for each in gone])

    def CreateBranch(self, request: Any, context: Any) -> Any:
        branch = messages.to_branch(request.branch)
        head = messages.to_commit(request.head) if request.HasField("head") else None
        provenance = [messages.to_branch(each) for each in request.provenance]
        if request.HasField("trigger") and request.trigger.branch:
            raise Unimplemented("localpachd does not fire branch triggers yet: make the branch without one")
        self._pfs.transact(lambda txn: branches.create(txn, branch, head, provenance))
        return Empty()

    def InspectBranch(self, request: Any, context: Any) -> Any:
        with self._pfs.db.read() as conn:
            return messages.branch_info(branches.inspect(conn, messages.to_branch(request.branch)))

    def ListBranch(self, request: Any, context: Any) -> Iterator[Any]:
        repo = messages.to_repo(request.repo) if request.HasField("repo") else None
        with self._pfs.db.read() as conn:
            yield from map(messages.branch_info, branches.list_all(conn, repo, request.reverse))

    def DeleteBranch(self, request: Any, context: Any) -> Any:
        branch = messages.to_branch(request.branch)
        self._pfs.transact(lambda txn: branches.delete(txn, branch, request.force))
        return Empty()

    def DeleteAll(self, request: Any, context: Any) -> Any:
        self._pfs.transact(repos.delete_everything)
        return Empty()
