"""A commit with its parent, children, provenance and metadata as one row of one statement. Knows no rules."""

import json
import sqlite3

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
