"""Walks through the provenance graph of commits or branches, nearest first."""

import sqlite3

MAX_DEPTH = 1000
"""The default limit of a walk's depth."""
MAX_FOUND = 10_000
"""The default limit of a walk's results."""

_COMMITS = ("commit_provenance", "commit_seq", "upstream")
_BRANCHES = ("branch_provenance", "branch", "upstream")


def above_commit(conn: sqlite3.Connection, seq: int, depth: int = MAX_DEPTH, most: int = MAX_FOUND) -> list[int]:
    """The commits in a commit's provenance, direct or not."""
    return _walk(conn, *_COMMITS, seq, depth, most)


def below_commit(conn: sqlite3.Connection, seq: int, depth: int = MAX_DEPTH, most: int = MAX_FOUND) -> list[int]:
    """The commits in a commit's subvenance, direct or not."""
    table, below, above = _COMMITS
    return _walk(conn, table, above, below, seq, depth, most)


def above_branch(conn: sqlite3.Connection, row: int, depth: int = MAX_DEPTH, most: int = MAX_FOUND) -> list[int]:
    """The branches in a branch's provenance, direct or not."""
    return _walk(conn, *_BRANCHES, row, depth, most)


def below_branch(conn: sqlite3.Connection, row: int, depth: int = MAX_DEPTH, most: int = MAX_FOUND) -> list[int]:
    """The branches in a branch's subvenance, direct or not."""
    table, below, above = _BRANCHES
    return _walk(conn, table, above, below, row, depth, most)


def _walk(conn: sqlite3.Connection, table: str, near: str, far: str, start: int, depth: int, most: int) -> list[int]:
    rows = conn.execute(
        f"""WITH RECURSIVE reached(id, depth) AS (
                SELECT {far}, 1 FROM {table} WHERE {near} = :start
                UNION SELECT p.{far}, r.depth + 1 FROM {table} p JOIN reached r ON p.{near} = r.id
                WHERE r.depth < :depth
            ) SELECT id FROM reached GROUP BY id ORDER BY MIN(depth), id LIMIT :most""",
        {"start": start, "depth": depth, "most": most},
    )
    return [row[0] for row in rows]
