"""Forgetting a commit's content while the commit stays: a job could compute it again from its provenance."""

from localpachd.errors import PachError
from localpachd.pfs import commits, contents
from localpachd.pfs.pfs_entities import CommitInfo
from localpachd.pfs.transaction import Transaction


def forget(txn: Transaction, info: CommitInfo) -> None:
    """Drops the content of a pipeline's finished output. Reading it fails from now on.

    Refused if other commits read through it, now or later: open or failed children, and the next commit on a branch
    whose head it is.
    """
    if not info.provenance:
        raise PachError("Forget Commit: the commit to be forgotten must be in an output repo")
    if info.finished is None:
        raise PachError("Forget Commit: the commit to be forgotten must be closed")
    for child in info.children:
        found = commits.find(txn.conn, child.repo, child.id)
        if found is not None and (found.finished is None or found.error):
            how = "closed without error" if found.error else "closed"
            raise PachError(f"Forget Commit: direct descendants must be {how}")
    if txn.conn.execute("SELECT 1 FROM branches WHERE head = ?", (info.seq,)).fetchone():
        raise PachError("Forget Commit: a branch's head cannot be forgotten: its next commit would stand on it")
    contents.forget(txn, info)
