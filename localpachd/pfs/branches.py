"""Branches: their heads and their provenance."""

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from localpachd.errors import PachError, prefixed
from localpachd.pfs import commits, lookup, metadata, names, provenance_graph, triggers
from localpachd.pfs.pfs_entities import SPEC, Branch, BranchInfo, Commit, Repo
from localpachd.pfs.transaction import Transaction


def create(
    txn: Transaction,
    branch: Branch,
    head: Commit | None = None,
    provenance: Sequence[Branch] = (),
    trigger: Mapping[str, Any] | None = None,
) -> None:
    """Creates a branch or changes its head, provenance or trigger. Missing provenance branches are created with an
    empty commit. A branch without a head, or whose provenance changes, gets a new commit, which stays open if a job is
    to fill it."""
    for each in (*provenance, branch):
        names.check_branch(each.name)
    repo = lookup.repo_id(txn.conn, branch.repo)
    trigger = triggers.checked(txn.conn, branch, trigger)
    if provenance and trigger:
        raise PachError("a branch cannot have both provenance and a trigger")
    upstream = _provenance_rows(txn, branch, provenance)
    target = _target(txn.conn, branch, head)
    row = lookup.find_branch(txn.conn, branch)
    if row is not None:
        _refuse_cycle(txn.conn, row["id"], upstream)
    rewired = row is None or set(provenance_graph.ProvenanceGraph(txn.conn, [row["id"]]).direct(row["id"])) != set(
        upstream
    )
    fresh = target is None and row is None
    if fresh or (rewired and upstream):
        above = target if target is not None else (row["head"] if row else None)
        target = empty_commit(txn, branch, provenance, above)
    branch_id = _store(txn, repo, branch, row, target, trigger)
    txn.changed.add(branch)
    if rewired:
        provenance_graph.rewire(
            txn.conn, branch_id, sorted(upstream, key=lambda each: lookup.branch_by_id(txn.conn, each).key)
        )
        txn.rewired.append(branch_id)
    if target is not None:
        txn.moved.append(branch_id)


def _provenance_rows(txn: Transaction, branch: Branch, provenance: Sequence[Branch]) -> list[int]:
    rows = []
    for each in provenance:
        if each.repo == branch.repo:
            raise PachError(f"repo {branch.repo} cannot be in the provenance of its own branch")
        row = lookup.find_branch(txn.conn, each)
        if row is not None:
            rows.append(row["id"])
            continue
        repo = lookup.repo_id(txn.conn, each.repo)
        made = commits.find(txn.conn, each.repo, txn.id)
        seq = made.seq if made else empty_commit(txn, each, (), None)
        rows.append(_store(txn, repo, each, None, seq, None))
    return rows


def _refuse_cycle(conn: sqlite3.Connection, branch: int, upstream: Sequence[int]) -> None:
    below = provenance_graph.ProvenanceGraph(conn, [branch]).downstream(branch)
    for each in upstream:
        if each in below:
            above, itself = lookup.branch_by_id(conn, each), lookup.branch_by_id(conn, branch)
            raise PachError(f'branch "{above}" cannot be both in "{itself}"\'s provenance and subvenance')


def _target(conn: sqlite3.Connection, branch: Branch, head: Commit | None) -> int | None:
    if head is None:
        return None
    if head.repo != branch.repo:
        raise PachError("branch and head commit must belong to the same repo")
    with prefixed(f"unable to inspect {head}"):
        return commits.resolve(conn, head).seq


def empty_commit(txn: Transaction, branch: Branch, provenance: Sequence[Branch], parent: int | None) -> int:
    """Adds an empty commit to a branch and returns its sequence number. It stays open if a job is to fill it. The
    caller moves the branch's head."""
    heads = [lookup.branch_row(txn.conn, each)["head"] for each in provenance]
    seq = commits.insert(txn, branch, "AUTO", parent, heads)
    if all(each.repo.type == SPEC for each in provenance):
        # No job will fill it: it is finished at once, and empty even if its parent is not.
        txn.conn.execute("UPDATE commits SET finishing = started, finished = started, size = 0 WHERE seq = ?", (seq,))
    return seq


def _store(
    txn: Transaction,
    repo: int,
    branch: Branch,
    row: sqlite3.Row | None,
    head: int | None,
    trigger: Mapping[str, Any] | None,
) -> int:
    if row is None:
        cursor = txn.conn.execute(
            "INSERT INTO branches (repo, name, head, trigger_spec, created) VALUES (?, ?, ?, ?, ?)",
            (repo, branch.name, head, json.dumps(trigger) if trigger else None, txn.now),
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid
    branch_id: int = row["id"]
    if head is not None:
        txn.conn.execute("UPDATE branches SET head = ? WHERE id = ?", (head, branch_id))
    if trigger:
        txn.conn.execute("UPDATE branches SET trigger_spec = ? WHERE id = ?", (json.dumps(trigger), branch_id))
    return branch_id


def inspect(conn: sqlite3.Connection, branch: Branch) -> BranchInfo:
    """The state of a branch; NotFound if it does not exist."""
    row = lookup.branch_row(conn, branch)
    return _info(conn, branch, row, provenance_graph.ProvenanceGraph(conn, [row["id"]]))


def _info(
    conn: sqlite3.Connection, branch: Branch, row: sqlite3.Row, provenance: provenance_graph.ProvenanceGraph
) -> BranchInfo:
    return BranchInfo(
        branch=branch,
        head=commits.by_seq(conn, row["head"]).commit,
        provenance=_references(conn, provenance.upstream(row["id"])),
        subvenance=_references(conn, provenance.downstream(row["id"])),
        direct_provenance=_references(conn, provenance.direct(row["id"])),
        trigger=json.loads(row["trigger_spec"]) if row["trigger_spec"] else None,
        created=row["created"],
        metadata=metadata.read_metadata(conn, "branch", row["id"]),
    )


def _references(conn: sqlite3.Connection, rows: Iterable[int]) -> tuple[Branch, ...]:
    return tuple(sorted((lookup.branch_by_id(conn, row) for row in rows), key=lambda each: each.key))


def of_repo(conn: sqlite3.Connection, repo: Repo) -> list[Branch]:
    """A repo's branches, oldest first."""
    row = lookup.repo_id(conn, repo)
    return [
        Branch(repo, each[0]) for each in conn.execute("SELECT name FROM branches WHERE repo = ? ORDER BY id", (row,))
    ]


def list_all(conn: sqlite3.Connection, repo: Repo | None = None, reverse: bool = False) -> list[BranchInfo]:
    """Branches of one repo or of all: newest first, those of one transaction upstream first; or the `reverse`."""
    found = conn.execute(
        "SELECT b.id, b.head, b.trigger_spec, b.created, r.project, r.name AS repo, r.type, b.name FROM branches b "
        "JOIN repos r ON r.id = b.repo WHERE :repo IS NULL OR b.repo = :repo",
        {"repo": lookup.repo_id(conn, repo) if repo is not None else None},
    ).fetchall()
    provenance = provenance_graph.ProvenanceGraph(conn)
    found.sort(key=lambda row: (-row["created"], len(provenance.upstream(row["id"])), row["id"]), reverse=reverse)
    return [
        _info(conn, Branch(Repo(row["project"], row["repo"], row["type"]), row["name"]), row, provenance)
        for row in found
    ]


def downstream_first(conn: sqlite3.Connection, found: Sequence[Branch]) -> list[Branch]:
    """Branches ordered so that each comes before those in its provenance; branches that do not exist come first."""
    rows = {branch: lookup.find_branch(conn, branch) for branch in found}
    provenance = provenance_graph.ProvenanceGraph(conn)
    depth = {branch: len(provenance.upstream(row["id"])) for branch, row in rows.items() if row is not None}
    return sorted(found, key=lambda branch: -depth.get(branch, math.inf))


def delete(txn: Transaction, branch: Branch, force: bool = False) -> None:
    """Deletes a branch, if it exists; its commits stay. With `force`, the branches downstream lose it from their
    provenance; without, they prevent the deletion."""
    row = lookup.find_branch(txn.conn, branch)
    if row is None:
        if not force:
            lookup.repo_id(txn.conn, branch.repo)
        return
    provenance = provenance_graph.ProvenanceGraph(txn.conn)
    below = provenance.downstream(row["id"])
    if below and not force:
        named = " ".join(str(each) for each in _references(txn.conn, below))
        raise PachError(f"branch {branch.name} has [{named}] as subvenance, deleting it would break those branches")
    for each in sorted(below):
        upstream = provenance.direct(each)
        if row["id"] in upstream:
            rest = [lookup.branch_by_id(txn.conn, other) for other in upstream if other != row["id"]]
            create(txn, lookup.branch_by_id(txn.conn, each), provenance=rest)
    txn.conn.execute("DELETE FROM branch_provenance WHERE branch = ? OR upstream = ?", (row["id"], row["id"]))
    txn.conn.execute("DELETE FROM branches WHERE id = ?", (row["id"],))
    txn.changed.add(branch)
    txn.moved = [each for each in txn.moved if each != row["id"]]
    txn.rewired = [each for each in txn.rewired if each != row["id"]]
