"""The calls about projects, repos and branches."""

from collections.abc import Iterator

from localpachd.api.calls.cancellation import CallContext
from localpachd.api.calls.handlers import lists
from localpachd.api.messages import pages
from localpachd.api.messages import pfs_messages as messages
from localpachd.api.pfs.transaction_servicer import TransactionalCalls
from localpachd.api.schema.schema import Empty, pfs_pb2, transaction_pb2
from localpachd.errors import NotFound
from localpachd.pfs import branches, projects, repos
from localpachd.pfs.pfs_entities import USER
from localpachd.pfs.pfs_service import PfsService
from localpachd.pps import spec_defaults


class RepoCalls:
    """Projects, repos and branches of `pfs_v2.API`."""

    _pfs: PfsService
    _write: TransactionalCalls

    def CreateProject(self, request: pfs_pb2.CreateProjectRequest, context: CallContext) -> Empty:
        self._pfs.transact(lambda txn: projects.create(txn, request.project.name, request.description, request.update))
        return Empty()

    def InspectProject(self, request: pfs_pb2.InspectProjectRequest, context: CallContext) -> pfs_pb2.ProjectInfo:
        with self._pfs.db.read() as conn:
            return messages.project_info(projects.inspect(conn, request.project.name))

    def InspectProjectV2(
        self, request: pfs_pb2.InspectProjectV2Request, context: CallContext
    ) -> pfs_pb2.InspectProjectV2Response:
        name = request.project.name
        with self._pfs.db.read() as conn:
            try:
                info = projects.inspect(conn, name)
            except NotFound as error:
                raise NotFound(f'could not inspect project "{name}": {error}') from error
            return pfs_pb2.InspectProjectV2Response(
                info=messages.project_info(info), defaults_json=spec_defaults.read(conn, name).spec
            )

    def ReposSummary(self, request: pfs_pb2.ReposSummaryRequest, context: CallContext) -> pfs_pb2.ReposSummaryResponse:
        found: dict[str, pfs_pb2.ReposSummary] = {}
        with self._pfs.db.read() as conn:
            for info in repos.list_all(conn, USER, {each.name for each in request.projects}):
                name = info.repo.project
                summary = found.setdefault(name, pfs_pb2.ReposSummary(project=pfs_pb2.Project(name=name)))
                summary.user_repo_count += 1
                summary.size_bytes += info.size
        wanted = [each.name for each in request.projects]
        return pfs_pb2.ReposSummaryResponse(summaries=[found[name] for name in wanted if name in found])

    @lists
    def ListProject(self, request: pfs_pb2.ListProjectRequest, context: CallContext) -> Iterator[pfs_pb2.ProjectInfo]:
        with self._pfs.db.read() as conn:
            yield from map(messages.project_info, projects.list_all(conn))

    def DeleteProject(self, request: pfs_pb2.DeleteProjectRequest, context: CallContext) -> Empty:
        self._pfs.transact(lambda txn: projects.delete(txn, request.project.name), frees=True)
        return Empty()

    def CreateRepo(self, request: pfs_pb2.CreateRepoRequest, context: CallContext) -> Empty:
        self._write(context, transaction_pb2.TransactionRequest(create_repo=request))
        return Empty()

    def InspectRepo(self, request: pfs_pb2.InspectRepoRequest, context: CallContext) -> pfs_pb2.RepoInfo:
        with self._pfs.db.read() as conn:
            return messages.repo_info(repos.inspect(conn, messages.to_repo(request.repo)), details=True)

    @lists
    def ListRepo(self, request: pfs_pb2.ListRepoRequest, context: CallContext) -> Iterator[pfs_pb2.RepoInfo]:
        wanted = {project.name for project in request.projects}
        with self._pfs.db.read() as conn:
            found = repos.list_all(conn, request.type, wanted)
            if request.HasField("page"):
                found.sort(key=lambda info: info.repo)
            for info in pages.page_of(found, request.page):
                yield messages.repo_info(info, details=False)

    def DeleteRepo(self, request: pfs_pb2.DeleteRepoRequest, context: CallContext) -> pfs_pb2.DeleteRepoResponse:
        gone = self._write(context, transaction_pb2.TransactionRequest(delete_repo=request))
        return pfs_pb2.DeleteRepoResponse(deleted=gone is not False)  # in a transaction it counts as deleted

    def DeleteRepos(self, request: pfs_pb2.DeleteReposRequest, context: CallContext) -> pfs_pb2.DeleteReposResponse:
        wanted = {project.name for project in request.projects}
        if not wanted and not request.all:
            return pfs_pb2.DeleteReposResponse()
        gone = self._pfs.transact(lambda txn: repos.delete_many(txn, () if request.all else wanted), frees=True)
        return pfs_pb2.DeleteReposResponse(repos=[messages.repo(each) for each in gone])

    def CreateBranch(self, request: pfs_pb2.CreateBranchRequest, context: CallContext) -> Empty:
        self._write(context, transaction_pb2.TransactionRequest(create_branch=request))
        return Empty()

    def InspectBranch(self, request: pfs_pb2.InspectBranchRequest, context: CallContext) -> pfs_pb2.BranchInfo:
        with self._pfs.db.read() as conn:
            return messages.branch_info(branches.inspect(conn, messages.to_branch(request.branch)))

    @lists
    def ListBranch(self, request: pfs_pb2.ListBranchRequest, context: CallContext) -> Iterator[pfs_pb2.BranchInfo]:
        repo = messages.to_repo(request.repo) if request.HasField("repo") else None
        with self._pfs.db.read() as conn:
            yield from map(messages.branch_info, branches.list_all(conn, repo, request.reverse))

    def DeleteBranch(self, request: pfs_pb2.DeleteBranchRequest, context: CallContext) -> Empty:
        self._write(context, transaction_pb2.TransactionRequest(delete_branch=request))
        return Empty()

    def DeleteAll(self, request: Empty, context: CallContext) -> Empty:
        self._pfs.transact(repos.delete_everything, frees=True)
        return Empty()
