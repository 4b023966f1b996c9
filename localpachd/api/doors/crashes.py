"""An interceptor that refuses the requests on which a real pachd crashes. localpachd itself understands them.

Each is a nil pointer or a negative index in Pachyderm 2.7.8: in `driver.go` and `driver_file.go` of
`src/server/pfs/server`, `src/server/pps/server/api_server.go`, or `task/util.go`, `pfsdb/pfsdb.go` and
`storage/chunk/reader.go` of `src/internal`. That of `storage.Fileset` is in `src/internal/storage/server.go` of 2.11.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from localpachd.api.calls.handlers import AnyHandler, CallInterceptor, checked
from localpachd.api.schema.schema import pfs_pb2, pps_pb2, storage_pb2, task_pb2, transaction_pb2
from localpachd.errors import PachdCrash

FaultFinder = Callable[[Any], str]
"""What is wrong with a request for a real pachd, as the end of a sentence; "" if nothing is."""

PagedRequest = pfs_pb2.ListFileRequest | pfs_pb2.WalkFileRequest | pps_pb2.ListDatumRequest


def _change(request: pfs_pb2.ModifyFileRequest) -> str:
    kind = request.WhichOneof("body")
    if kind == "set_commit" and not request.set_commit.HasField("branch"):
        return "it has no set_commit.branch"
    if kind == "copy_file" and not request.copy_file.src.commit.HasField("repo"):
        return "it has no copy_file.src.commit.repo"
    return ""


def _appended(request: storage_pb2.CreateFilesetRequest) -> str:
    missing = request.HasField("append_file") and not request.append_file.HasField("data")
    return "it has no append_file.data" if missing else ""


def _jobs(request: pps_pb2.ListJobRequest) -> str:
    return "it has no input_commit.repo" if not all(each.HasField("repo") for each in request.input_commit) else ""


def _tasks(request: task_pb2.ListTaskRequest) -> str:
    return "it has no group" if not request.HasField("group") else ""


def _page(request: PagedRequest) -> str:
    return "its number is negative and its order reversed" if request.reverse and request.number < 0 else ""


def _file(request: pfs_pb2.GetFileRequest) -> str:
    return "its offset is negative" if request.offset < 0 else ""


def _batch(request: transaction_pb2.BatchTransactionRequest) -> str:
    repos = (
        repo
        for each in request.requests
        for held, repo in (
            (each.HasField("start_commit"), each.start_commit.branch.repo),
            (each.HasField("create_branch"), each.create_branch.branch.repo),
            (each.HasField("delete_branch"), each.delete_branch.branch.repo),
            (each.HasField("delete_repo"), each.delete_repo.repo),
        )
        if held
    )
    return "" if all(repo.HasField("project") for repo in repos) else "a repo of it has no project"


_FAULTS: Mapping[str, FaultFinder] = {
    "pfs_v2.API/ModifyFile": _change,
    "pfs_v2.API/CreateFileSet": _change,
    "pfs_v2.API/GetFile": _file,
    "pfs_v2.API/ListFile": _page,
    "pfs_v2.API/WalkFile": _page,
    "pfs_v2.API/ListTask": _tasks,
    "pps_v2.API/ListTask": _tasks,
    "pps_v2.API/ListDatum": _page,
    "pps_v2.API/ListJob": _jobs,
    "storage.Fileset/CreateFileset": _appended,
    "transaction_v2.API/BatchTransaction": _batch,
}


class CrashInterceptor(CallInterceptor):
    """Lets such a request fail before its call sees it. Belongs below the interceptor that maps errors."""

    def around(self, handler: AnyHandler, method: str) -> AnyHandler:
        fault = _FAULTS.get(method)
        return handler if fault is None else checked(handler, partial(_check, fault, method))


def _check(fault: FaultFinder, method: str, request: object) -> None:
    wrong = fault(request)
    if wrong:
        raise PachdCrash(f"a real pachd crashes on this request of {method}: {wrong}")
