"""Walks through the provenance graph of commits or branches, nearest first."""

import sqlite3
from dataclasses import dataclass

MAX_DEPTH = 1000
"""The default limit of a walk's depth."""
MAX_FOUND = 10_000
"""The default limit of a walk's results."""


@dataclass(frozen=True, slots=True)
class _Edges:
    """A table of edges, and its columns from which and to which a walk goes."""

    table: str
    near: str
    far: str


_ABOVE_COMMIT = _Edges("commit_provenance", "commit_seq", "upstream")
_BELOW_COMMIT = _Edges("commit_provenance", "upstream", "commit_seq")
_ABOVE_BRANCH = _Edges("branch_provenance", "branch", "upstream")
_BELOW_BRANCH = _Edges("branch_provenance", "upstream", "branch")


def above_commit(conn: sqlite3.Connection, seq: int, depth: int = MAX_DEPTH, most: int = MAX_FOUND) -> list[int]:
    """The commits in a commit's provenance, direct or not."""
    return _walk(conn, _ABOVE_COMMIT, seq, depth, most)


def below_commit(conn: sqlite3.Connection, seq: int, depth: int = MAX_DEPTH, most: int = MAX_FOUND) -> list[int]:
    """The commits in a commit's subvenance, direct or not."""
    return _walk(conn, _BELOW_COMMIT, seq, depth, most)


def above_branch(conn: sqlite3.Connection, row: int, depth: int = MAX_DEPTH, most: int = MAX_FOUND) -> list[int]:
    """The branches in a branch's provenance, direct or not."""
    return _walk(conn, _ABOVE_BRANCH, row, depth, most)


def below_branch(conn: sqlite3.Connection, row: int, depth: int = MAX_DEPTH, most: int = MAX_FOUND) -> list[int]:
    """The branches in a branch's subvenance, direct or not."""
    return _walk(conn, _BELOW_BRANCH, row, depth, most)


def _walk(conn: sqlite3.Connection, edges: _Edges, start: int, depth: int, most: int) -> list[int]:
    table, near, far = edges.table, edges.near, edges.far
    rows = conn.execute(
        f"""WITH RECURSIVE reached(id, depth) AS (
                SELECT {far}, 1 FROM {table} WHERE {near} = :start
                UNION SELECT p.{far}, r.depth + 1 FROM {table} p JOIN reached r ON p.{near} = r.id
                WHERE r.depth < :depth
            ) SELECT id FROM reached GROUP BY id ORDER BY MIN(depth), id LIMIT :most""",
        {"start": start, "depth": depth, "most": most},
    )
    return [row[0] for row in rows]
