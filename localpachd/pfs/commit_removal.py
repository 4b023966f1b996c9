"""Deleting commits: squashing, which keeps their content in their children, and dropping, which does not; and
forgetting their content alone, which a job could compute again.

The rules and texts are the real server's (`src/server/pfs/server/commit_set.go`; for single commits those of 2.8).
"""

import sqlite3
from collections.abc import Sequence

from localpachd.errors import PachError
from localpachd.pfs import branches, commit_sets, commits, contents, lookup, provenance_graph
from localpachd.pfs.pfs_entities import SPEC, Commit, CommitInfo
from localpachd.pfs.transaction import Transaction

_NO_HEAD = 0
"""The head of a branch whose commits are being deleted; no commit has this sequence number."""


def squash_set(txn: Transaction, commit_set: str) -> None:
    """Deletes a commit set whose commits all have children, which keep their content. Does nothing for an unknown set;
    refused while other sets depend on it."""
    _squash(txn, _independent(txn.conn, commit_set))


def drop_set(txn: Transaction, commit_set: str) -> None:
    """Deletes a commit set whose commits have no children, with its content; otherwise as `squash_set`."""
    _drop(txn, _independent(txn.conn, commit_set))


def squash(txn: Transaction, commit: Commit, recursive: bool = False) -> None:
    """Deletes a commit as `squash_set` does and, if `recursive`, its subvenance."""
    _squash(txn, _with_dependants(txn.conn, commit, recursive, "squash"))


def drop(txn: Transaction, commit: Commit, recursive: bool = False) -> None:
    """Deletes a commit as `drop_set` does and, if `recursive`, its subvenance."""
    _drop(txn, _with_dependants(txn.conn, commit, recursive, "drop"))


def _independent(conn: sqlite3.Connection, commit_set: str) -> list[CommitInfo]:
    """The commits of a set on which no other set depends."""
    below = conn.execute(
        """WITH RECURSIVE below(id) AS (
               SELECT ? UNION SELECT c.id FROM below b JOIN commits above ON above.id = b.id
               JOIN commit_provenance p ON p.upstream = above.seq JOIN commits c ON c.seq = p.commit_seq
           ) SELECT id FROM below ORDER BY id""",
        (commit_set,),
    )
    others = [row[0] for row in below if row[0] != commit_set]
    if others:
        named = " ".join(f'id:"{each}"' for each in others)
        raise PachError(
            f'commit set "id:\\"{commit_set}\\"" cannot be dropped because it has subvenant commit sets: [{named}]'
        )
    return commit_sets.members(conn, commit_set)


def _with_dependants(conn: sqlite3.Connection, commit: Commit, recursive: bool, verb: str) -> list[CommitInfo]:
    info = commits.resolve(conn, commit)
    rows = conn.execute(
        """WITH RECURSIVE below(seq) AS (
               SELECT ? UNION SELECT p.commit_seq FROM commit_provenance p JOIN below b ON p.upstream = b.seq
           ) SELECT seq FROM below ORDER BY seq""",
        (info.seq,),
    ).fetchall()
    if len(rows) > 1 and not recursive:
        raise PachError(f"cannot {verb} commit ({info.commit}) with subvenance without recursive")
    return commit_sets.upstream_first(conn, [row[0] for row in rows])


def _squash(txn: Transaction, doomed: Sequence[CommitInfo]) -> None:
    for info in doomed:
        _refuse_version(info)
        if not info.children:
            raise PachError(
                "cannot squash a commit that has no children as that would cause data loss, use the drop operation "
                f"instead: {info.commit}"
            )
    _remove(txn, doomed)


def _drop(txn: Transaction, doomed: Sequence[CommitInfo]) -> None:
    for info in doomed:
        _refuse_version(info)
        if info.children:
            raise PachError(f"cannot drop a commit that has children: {info.commit}")
    _remove(txn, doomed)


def _refuse_version(info: CommitInfo) -> None:
    if info.commit.repo.type == SPEC and info.origin == "USER":
        raise PachError(f"cannot squash commit {info.commit} because it updated a pipeline")


def _remove(txn: Transaction, doomed: Sequence[CommitInfo]) -> None:
    for info in doomed:
        for child in info.children:
            found = commits.find(txn.conn, child.repo, child.id)
            if found is not None and found.finished is None:
                raise PachError(f"cannot squash until child commit {child} is finished")
    waiting = {branch for info in doomed for branch in _cut_out(txn, info)}
    provenance = provenance_graph.ProvenanceGraph(txn.conn)

    def repair(branch: int) -> None:
        if branch in waiting:
            waiting.remove(branch)
            for above in provenance.direct(branch):
                repair(above)
            _repair_head(txn, branch, provenance.direct(branch))

    # Deepest first: a branch without provenance can share the commit of one with, but not the other way round.
    for branch in sorted(waiting, key=lambda each: (-len(provenance.upstream(each)), each)):
        repair(branch)


def _cut_out(txn: Transaction, info: CommitInfo) -> list[int]:
    """Deletes a commit, makes its parent that of its children, and returns the branches that it was the head of."""
    contents.copy_to_children(txn, info)
    parent = txn.conn.execute("SELECT parent FROM commits WHERE seq = ?", (info.seq,)).fetchone()[0]
    heads = [row[0] for row in txn.conn.execute("SELECT id FROM branches WHERE head = ?", (info.seq,))]
    txn.conn.execute("UPDATE branches SET head = ? WHERE head = ?", (parent or _NO_HEAD, info.seq))
    txn.conn.execute("UPDATE commits SET parent = ? WHERE parent = ?", (parent, info.seq))
    commits.delete(txn, [info])
    return heads


def _repair_head(txn: Transaction, branch: int, upstream: Sequence[int]) -> None:
    """Adds a commit to a branch that lost its head, or whose head has other provenance than the present heads upstream:
    the real server leaves the latter to fsck's complaint."""
    named = lookup.branch_by_id(txn.conn, branch)
    head = lookup.branch_row(txn.conn, named)["head"]
    provenance = [lookup.branch_by_id(txn.conn, each) for each in upstream]
    made = commits.find(txn.conn, named.repo, txn.id) if head == _NO_HEAD else None
    fresh = made.seq if made else head
    rows = txn.conn.execute("SELECT upstream FROM commit_provenance WHERE commit_seq = ?", (fresh,))
    fits = {lookup.branch_row(txn.conn, each)["head"] for each in provenance} <= {row[0] for row in rows}
    if fresh == _NO_HEAD or not fits:
        fresh = branches.empty_commit(txn, named, provenance, None if head == _NO_HEAD else head)
    if fresh != head:
        txn.conn.execute("UPDATE branches SET head = ? WHERE id = ?", (fresh, branch))
        txn.moved.append(branch)


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
