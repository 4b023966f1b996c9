"""From names to rows: the repos and branches that references name."""

import json
import sqlite3
from collections.abc import Collection

from localpachd.errors import NotFound
from localpachd.pfs.pfs_entities import Branch, Repo


def find_repo(conn: sqlite3.Connection, repo: Repo) -> int | None:
    row = conn.execute(
        "SELECT id FROM repos WHERE project = ? AND name = ? AND type = ?", (repo.project, repo.name, repo.type)
    ).fetchone()
    return row[0] if row else None


def repo_id(conn: sqlite3.Connection, repo: Repo) -> int:
    """The row id of a repo; NotFound if it does not exist."""
    found = find_repo(conn, repo)
    if found is None:
        raise NotFound(f"repo {repo} not found")
    return found


def find_branch(conn: sqlite3.Connection, branch: Branch) -> sqlite3.Row | None:
    """The row (id, head, trigger_spec, created) of a branch, or None."""
    row: sqlite3.Row | None = conn.execute(
        "SELECT b.id, b.head, b.trigger_spec, b.created FROM branches b JOIN repos r ON r.id = b.repo "
        "WHERE r.project = ? AND r.name = ? AND r.type = ? AND b.name = ?",
        (branch.repo.project, branch.repo.name, branch.repo.type, branch.name),
    ).fetchone()
    return row


def branch_row(conn: sqlite3.Connection, branch: Branch) -> sqlite3.Row:
    """The row (id, head, trigger_spec, created) of a branch; NotFound if it does not exist."""
    row = find_branch(conn, branch)
    if row is None:
        raise NotFound(f'branch "{branch.name}" not found in repo {branch.repo}')
    return row


def heads_above(conn: sqlite3.Connection, branch: int) -> list[int]:
    """The heads, as sequence numbers, of the branches in a branch's direct provenance."""
    rows = conn.execute(
        "SELECT b.head FROM branch_provenance p JOIN branches b ON b.id = p.upstream WHERE p.branch = ? "
        "ORDER BY p.position",
        (branch,),
    )
    return [row[0] for row in rows]


def branch_by_id(conn: sqlite3.Connection, branch: int) -> Branch:
    """The reference of a branch's row."""
    row = conn.execute(
        "SELECT r.project, r.name, r.type, b.name FROM branches b JOIN repos r ON r.id = b.repo WHERE b.id = ?",
        (branch,),
    ).fetchone()
    return Branch(Repo(*row[:3]), row[3])


def repeated_repo(conn: sqlite3.Connection, branches: Collection[int]) -> Repo | None:
    """A repo in which two of these branches are; None if each is in another."""
    row = conn.execute(
        "SELECT r.project, r.name, r.type FROM branches b JOIN repos r ON r.id = b.repo "
        "WHERE b.id IN (SELECT value FROM json_each(?)) GROUP BY b.repo HAVING COUNT(*) > 1 ORDER BY MAX(b.id) LIMIT 1",
        (json.dumps(list(branches)),),
    ).fetchone()
    return Repo(*row) if row else None
