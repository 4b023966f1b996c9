"""Forgetting what a commit held while the commit stays: it could be computed again from what it was made of."""

from localpachd.errors import PachError
from localpachd.pfs import commits, contents
from localpachd.pfs.entities import CommitInfo
from localpachd.pfs.transaction import Transaction


def forget(txn: Transaction, info: CommitInfo) -> None:
    """Lets go of the content of a pipeline's finished output. Reading it fails from now on.

    Refused where other commits read through it, now or later: those open or failed above it, and those to come on a
    branch whose head it is.
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
