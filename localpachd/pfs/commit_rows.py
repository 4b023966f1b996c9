"""A commit with its parent, children, provenance and metadata as one row of one statement, and its ancestors along
parents, by sequence number. Knows no rules."""

import json
import sqlite3
from collections.abc import Iterator

from localpachd.pfs import metadata
from localpachd.pfs.pfs_entities import Commit, CommitInfo, Repo

# A parent and its children are in one repo.
SELECT = f"""SELECT c.seq, r.project, r.name, r.type, c.id, c.branch, c.origin, c.description,
        c.started, c.finishing, c.finished, c.error, c.size, p.id AS parent_id, p.branch AS parent_branch,
        (SELECT json_group_array(json_array(k.seq, k.id, k.branch)) FROM commits k WHERE k.parent = c.seq) AS children,
        (SELECT json_group_array(json_array(l.position, s.project, s.name, s.type, u.id, u.branch))
            FROM commit_provenance l JOIN commits u ON u.seq = l.upstream JOIN repos s ON s.id = u.repo
            WHERE l.commit_seq = c.seq) AS provenance,
        {metadata.column("commit", "c.seq")} AS metadata
    FROM commits c JOIN repos r ON r.id = c.repo LEFT JOIN commits p ON p.seq = c.parent"""
"""Rows for `decoded`. In the clauses appended to it, `c` is the commit and `r` its repo."""

# A commit and its ancestors, nearest first. SQLite reads no further than a query needs.
_LINE = """WITH RECURSIVE line(seq, parent, id, finishing, finished, error, size, depth) AS (
        SELECT seq, parent, id, finishing, finished, error, size, 0 FROM commits WHERE seq = ?
        UNION ALL SELECT c.seq, c.parent, c.id, c.finishing, c.finished, c.error, c.size, line.depth + 1
            FROM line JOIN commits c ON c.seq = line.parent
    ) SELECT seq, id, finishing, finished, size FROM line"""


def decoded(row: sqlite3.Row) -> CommitInfo:
    """The commit of a row of SELECT."""
    repo = Repo(row["project"], row["name"], row["type"])
    return CommitInfo(
        seq=row["seq"],
        commit=Commit(repo, row["id"], row["branch"]),
        origin=row["origin"],
        description=row["description"],
        parent=Commit(repo, row["parent_id"], row["parent_branch"]) if row["parent_id"] is not None else None,
        children=tuple(Commit(repo, id_, branch) for _, id_, branch in sorted(json.loads(row["children"]))),
        started=row["started"],
        finishing=row["finishing"],
        finished=row["finished"],
        provenance=tuple(
            Commit(Repo(project, name, type_), id_, branch)
            for _, project, name, type_, id_, branch in sorted(json.loads(row["provenance"]))
        ),
        error=row["error"],
        size=row["size"],
        metadata=metadata.decoded(row["metadata"]),
    )


def line(conn: sqlite3.Connection, seq: int) -> Iterator[int]:
    """A commit and its ancestors, nearest first."""
    at: int | None = seq
    while at is not None:
        yield at
        row = conn.execute("SELECT parent FROM commits WHERE seq = ?", (at,)).fetchone()
        at = row["parent"] if row else None


def nearest_whole(conn: sqlite3.Connection, seq: int) -> sqlite3.Row | None:
    """The row (seq, id, finishing, finished, size) of the commit itself or of its nearest ancestor that is finished
    without error; None if there is none."""
    where = "WHERE finished IS NOT NULL AND error = '' LIMIT 1"
    row: sqlite3.Row | None = conn.execute(f"{_LINE} {where}", (seq,)).fetchone()
    return row


def base(conn: sqlite3.Connection, seq: int) -> sqlite3.Row | None:
    """As `nearest_whole`, of the commit that this one is based on: its nearest ancestor without error, which may still
    be open."""
    row: sqlite3.Row | None = conn.execute(f"{_LINE} WHERE depth > 0 AND error = '' LIMIT 1", (seq,)).fetchone()
    return row
