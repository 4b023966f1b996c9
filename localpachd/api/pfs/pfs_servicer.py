"""The `pfs_v2.API` service, assembled from its calls by noun; those without a noun of their own are here."""

from collections.abc import Iterator
from itertools import chain

from localpachd.api.calls.cancellation import CallContext
from localpachd.api.calls.handlers import lists
from localpachd.api.messages import pages, pfs_messages as messages, pickers
from localpachd.api.pfs.pfs_commits import CommitCalls
from localpachd.api.pfs.pfs_files import FileCalls
from localpachd.api.pfs.pfs_modify import ModifyCalls
from localpachd.api.pfs.transaction_servicer import TransactionalCalls
from localpachd.api.schema.schema import Empty, pfs_pb2, task_pb2, transaction_pb2
from localpachd.errors import InvalidArgument, NotFound, Unimplemented
from localpachd.pfs import branches, commit_removal, commits, lookup, projects, provenance_graph, repos
from localpachd.pfs.files import cache, egress
from localpachd.pfs.pfs_entities import USER
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.provenance_graph import MAX_DEPTH, MAX_FOUND, GraphEdges
from localpachd.pfs.upkeep import fsck
from localpachd.pps import spec_defaults
from localpachd.storage.big_chunks import missing


class PfsServicer(CommitCalls, ModifyCalls, FileCalls):
    """Projects, repos, branches, commits and files; walks through provenance, checks, egress, and values that clients
    cache on the server."""

    def __init__(self, pfs: PfsService, write: TransactionalCalls) -> None:
        self._pfs = pfs
        self._write = write

    def CreateProject(self, request: pfs_pb2.CreateProjectRequest) -> None:
        self._pfs.transact(lambda txn: projects.create(txn, request.project.name, request.description, request.update))

    def InspectProject(self, request: pfs_pb2.InspectProjectRequest) -> pfs_pb2.ProjectInfo:
        with self._pfs.db.read() as conn:
            return messages.project_info(projects.inspect(conn, request.project.name))

    def InspectProjectV2(self, request: pfs_pb2.InspectProjectV2Request) -> pfs_pb2.InspectProjectV2Response:
        name = request.project.name
        with self._pfs.db.read() as conn:
            try:
                info = projects.inspect(conn, name)
            except NotFound as error:
                raise NotFound(f'could not inspect project "{name}": {error}') from error
            return pfs_pb2.InspectProjectV2Response(
                info=messages.project_info(info), defaults_json=spec_defaults.read(conn, name).spec
            )

    def ReposSummary(self, request: pfs_pb2.ReposSummaryRequest) -> pfs_pb2.ReposSummaryResponse:
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
    def ListProject(self, request: pfs_pb2.ListProjectRequest) -> Iterator[pfs_pb2.ProjectInfo]:
        with self._pfs.db.read() as conn:
            yield from map(messages.project_info, projects.list_all(conn))

    def DeleteProject(self, request: pfs_pb2.DeleteProjectRequest) -> None:
        self._pfs.transact(lambda txn: projects.delete(txn, request.project.name), frees=True)

    def CreateRepo(self, request: pfs_pb2.CreateRepoRequest, context: CallContext) -> None:
        self._write(context, transaction_pb2.TransactionRequest(create_repo=request))

    def InspectRepo(self, request: pfs_pb2.InspectRepoRequest) -> pfs_pb2.RepoInfo:
        with self._pfs.db.read() as conn:
            return messages.repo_info(repos.inspect(conn, messages.to_repo(request.repo)), details=True)

    @lists
    def ListRepo(self, request: pfs_pb2.ListRepoRequest) -> Iterator[pfs_pb2.RepoInfo]:
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

    def DeleteRepos(self, request: pfs_pb2.DeleteReposRequest) -> pfs_pb2.DeleteReposResponse:
        wanted = {project.name for project in request.projects}
        if not wanted and not request.all:
            return pfs_pb2.DeleteReposResponse()
        gone = self._pfs.transact(lambda txn: repos.delete_many(txn, () if request.all else wanted), frees=True)
        return pfs_pb2.DeleteReposResponse(repos=[messages.repo(each) for each in gone])

    def CreateBranch(self, request: pfs_pb2.CreateBranchRequest, context: CallContext) -> None:
        self._write(context, transaction_pb2.TransactionRequest(create_branch=request))

    def InspectBranch(self, request: pfs_pb2.InspectBranchRequest) -> pfs_pb2.BranchInfo:
        with self._pfs.db.read() as conn:
            return messages.branch_info(branches.inspect(conn, messages.to_branch(request.branch)))

    @lists
    def ListBranch(self, request: pfs_pb2.ListBranchRequest) -> Iterator[pfs_pb2.BranchInfo]:
        repo = messages.to_repo(request.repo) if request.HasField("repo") else None
        with self._pfs.db.read() as conn:
            yield from map(messages.branch_info, branches.list_all(conn, repo, request.reverse))

    def DeleteBranch(self, request: pfs_pb2.DeleteBranchRequest, context: CallContext) -> None:
        self._write(context, transaction_pb2.TransactionRequest(delete_branch=request))

    def DeleteAll(self, request: Empty) -> None:
        self._pfs.transact(repos.delete_everything, frees=True)

    @lists
    def WalkCommitProvenance(self, request: pfs_pb2.WalkCommitProvenanceRequest) -> Iterator[pfs_pb2.CommitInfo]:
        yield from self._commits(request, provenance_graph.ABOVE_COMMIT)

    @lists
    def WalkCommitSubvenance(self, request: pfs_pb2.WalkCommitSubvenanceRequest) -> Iterator[pfs_pb2.CommitInfo]:
        yield from self._commits(request, provenance_graph.BELOW_COMMIT)

    @lists
    def WalkBranchProvenance(self, request: pfs_pb2.WalkBranchProvenanceRequest) -> Iterator[pfs_pb2.BranchInfo]:
        yield from self._branches(request, provenance_graph.ABOVE_BRANCH)

    @lists
    def WalkBranchSubvenance(self, request: pfs_pb2.WalkBranchSubvenanceRequest) -> Iterator[pfs_pb2.BranchInfo]:
        yield from self._branches(request, provenance_graph.BELOW_BRANCH)

    def ForgetCommit(self, request: pfs_pb2.ForgetCommitRequest) -> None:
        self._pfs.transact(lambda txn: commit_removal.forget(txn, pickers.commit(txn.conn, request.commit)), frees=True)

    def _commits(
        self, request: pfs_pb2.WalkCommitProvenanceRequest | pfs_pb2.WalkCommitSubvenanceRequest, edges: GraphEdges
    ) -> Iterator[pfs_pb2.CommitInfo]:
        depth, most = request.max_depth or MAX_DEPTH, request.max_commits or MAX_FOUND
        with self._pfs.db.read() as conn:
            for start in [pickers.commit(conn, each).seq for each in request.start]:
                for seq in provenance_graph.walk(conn, edges, start, depth, most):
                    yield messages.commit_info(commits.by_seq(conn, seq))

    def _branches(
        self, request: pfs_pb2.WalkBranchProvenanceRequest | pfs_pb2.WalkBranchSubvenanceRequest, edges: GraphEdges
    ) -> Iterator[pfs_pb2.BranchInfo]:
        depth, most = (request.max_depth or MAX_DEPTH, request.max_branches or MAX_FOUND)
        with self._pfs.db.read() as conn:
            for start in [lookup.branch_row(conn, pickers.branch(each))["id"] for each in request.start]:
                for row in provenance_graph.walk(conn, edges, start, depth, most):
                    yield messages.branch_info(branches.inspect(conn, lookup.branch_by_id(conn, row)))

    def Egress(self, request: pfs_pb2.EgressRequest) -> pfs_pb2.EgressResponse:
        target = request.WhichOneof("target")
        if target == "sql_database":
            raise Unimplemented("localpachd does not serve egress to SQL databases")
        if target is None:
            raise InvalidArgument("egress must have a target")
        size = egress.copy(self._pfs, messages.to_commit(request.commit), request.object_storage.url)
        return pfs_pb2.EgressResponse(object_storage=pfs_pb2.EgressResponse.ObjectStorageResult(bytes_written=size))

    @lists
    def Fsck(self, request: pfs_pb2.FsckRequest) -> Iterator[pfs_pb2.FsckResponse]:
        if request.fix:
            self._pfs.transact(fsck.fix)
        kind = request.WhichOneof("zombie_check")
        # No layer that this snapshot has is swept meanwhile.
        with self._pfs.chunks.uses.one(), self._pfs.db.read() as conn:
            found = fsck.check(conn)
            if kind == "zombie_target":
                found = chain(found, fsck.zombies(conn, messages.to_commit(request.zombie_target)))
            elif kind == "zombie_all" and request.zombie_all:
                found = chain(found, (text for each in fsck.outputs(conn) for text in fsck.zombies(conn, each)))
            for text in found:
                yield pfs_pb2.FsckResponse(error=text)
            there = set(self._pfs.chunks.hashes())  # after the snapshot was taken: all that it refers to
            for text in fsck.unreadable(conn, lambda digest: "" if digest in there else str(missing(digest))):
                yield pfs_pb2.FsckResponse(error=text)

    def CheckStorage(self, request: pfs_pb2.CheckStorageRequest) -> pfs_pb2.CheckStorageResponse:
        count = self._pfs.chunks.check(request.chunk_begin, request.chunk_end, request.read_chunk_data)
        return pfs_pb2.CheckStorageResponse(chunk_object_count=count)

    def ListTask(self, request: task_pb2.ListTaskRequest) -> Iterator[task_pb2.TaskInfo]:
        return iter(())  # storage queues no tasks

    def PutCache(self, request: pfs_pb2.PutCacheRequest) -> None:
        value = request.value.SerializeToString()
        self._pfs.transact(lambda txn: cache.put(txn, request.key, value, [*request.file_set_ids], request.tag))

    def GetCache(self, request: pfs_pb2.GetCacheRequest) -> pfs_pb2.GetCacheResponse:
        reply = pfs_pb2.GetCacheResponse()
        reply.value.ParseFromString(self._pfs.transact(lambda txn: cache.get(txn, request.key)))
        return reply

    def ClearCache(self, request: pfs_pb2.ClearCacheRequest) -> None:
        self._pfs.transact(lambda txn: cache.clear(txn, request.tag_prefix), frees=True)
