"""The `pfs_v2.API` service, assembled from its calls by noun."""

from localpachd.api.pfs.pfs_cache import CacheCalls
from localpachd.api.pfs.pfs_checks import CheckCalls
from localpachd.api.pfs.pfs_commits import CommitCalls
from localpachd.api.pfs.pfs_egress import EgressCalls
from localpachd.api.pfs.pfs_files import FileCalls
from localpachd.api.pfs.pfs_filesets import FileSetCalls
from localpachd.api.pfs.pfs_modify import ModifyCalls
from localpachd.api.pfs.pfs_repos import RepoCalls
from localpachd.api.pfs.pfs_walks import WalkCalls
from localpachd.api.pfs.transaction_servicer import TransactionalCalls
from localpachd.pfs.pfs_service import PfsService


class PfsServicer(
    RepoCalls, CommitCalls, WalkCalls, ModifyCalls, FileCalls, FileSetCalls, EgressCalls, CheckCalls, CacheCalls
):
    """Projects, repos, branches, commits and files."""

    def __init__(self, pfs: PfsService, write: TransactionalCalls) -> None:
        self._pfs = pfs
        self._write = write
