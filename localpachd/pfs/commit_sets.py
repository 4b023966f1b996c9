"""Commit sets: all commits that share an id, across repos, and the commits they depend on."""

import sqlite3
from collections.abc import Iterator

from localpachd.errors import NotFound
from localpachd.pfs import commits
from localpachd.pfs.pfs_entities import Commit, CommitInfo


def inspect(conn: sqlite3.Connection, commit_set: str) -> list[CommitInfo]:
    """The set's commits and the commits of other sets that they depend on, upstream first; NotFound if it is empty."""
    rows = conn.execute(
        """WITH RECURSIVE above(seq) AS (
               SELECT seq FROM commits WHERE id = ?
               UNION SELECT p.upstream FROM commit_provenance p JOIN above a ON p.commit_seq = a.seq
           ) SELECT seq FROM above ORDER BY seq""",
        (commit_set,),
    ).fetchall()
    if not rows:
        raise NotFound(f"no commits found for commitset {commit_set}")
    return upstream_first(conn, [row[0] for row in rows])


def members(conn: sqlite3.Connection, commit_set: str) -> list[CommitInfo]:
    """The commits with this id, upstream first."""
    rows = conn.execute("SELECT seq FROM commits WHERE id = ? ORDER BY seq", (commit_set,)).fetchall()
    return upstream_first(conn, [row[0] for row in rows])


def upstream_first(conn: sqlite3.Connection, seqs: list[int]) -> list[CommitInfo]:
    """Commits in topological order of their provenance, otherwise in order of creation."""
    waiting = {info.commit: info for info in commits.by_seqs(conn, seqs)}
    ordered: list[CommitInfo] = []

    def visit(commit: Commit) -> None:
        info = waiting.pop(commit, None)
        if info is not None:
            for above in info.provenance:
                visit(above)
            ordered.append(info)

    for commit in list(waiting):
        visit(commit)
    return ordered


def list_all(conn: sqlite3.Connection, project: str = "") -> Iterator[tuple[str, list[CommitInfo]]]:
    """Every commit set as `inspect` returns it, that of the newest commit first; with `project`, only the sets that
    have a commit there."""
    rows = conn.execute(
        "SELECT c.id, MAX(c.seq) AS newest FROM commits c JOIN repos r ON r.id = c.repo "
        "WHERE ? IN ('', r.project) GROUP BY c.id ORDER BY newest DESC",
        (project,),
    ).fetchall()
    for row in rows:
        yield row["id"], inspect(conn, row["id"])
