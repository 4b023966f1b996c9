"""Sequences of commits: those of a repo, those along parents, and the next one on a branch."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from localpachd.errors import Unavailable
from localpachd.pfs import commit_rows, commits, contents, lookup
from localpachd.pfs.pfs_entities import Branch, Commit, CommitInfo, Repo
from localpachd.storage.filesets import FileSet


def list_repo(
    conn: sqlite3.Connection, repo: Repo | None, origin: str = "", reverse: bool = False, beyond: int | None = None
) -> Iterator[CommitInfo]:
    """The commits of a repo, or of all repos: newest first, or oldest first with `reverse`. `beyond` (ns) keeps only
    those started earlier, or later with `reverse`."""
    row = lookup.repo_id(conn, repo) if repo is not None else None
    order, side = ("ASC", ">") if reverse else ("DESC", "<")
    seqs = conn.execute(
        "SELECT seq FROM commits WHERE (:repo IS NULL OR repo = :repo) AND (:origin = '' OR origin = :origin) "
        f"AND (:beyond IS NULL OR started {side} :beyond) ORDER BY seq {order}",
        {"repo": row, "origin": origin, "beyond": beyond},
    ).fetchall()
    return (commits.by_seq(conn, each[0]) for each in seqs)


def list_line(conn: sqlite3.Connection, to: Commit, from_: Commit | None, origin: str = "") -> Iterator[CommitInfo]:
    """The commits from `to` back to `from_` (exclusive) along parents, newest first."""
    newest = commits.resolve(conn, to)
    stop = commits.resolve(conn, from_).seq if from_ is not None else None
    for seq in commit_rows.line(conn, newest.seq):
        if seq == stop:
            return
        info = commits.by_seq(conn, seq)
        if not origin or info.origin == origin:
            yield info


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """A commit that was searched, how many were searched before it, and whether it changes the file itself."""

    commit: Commit
    before: int
    found: bool


def search(conn: sqlite3.Connection, start: Commit, path: str) -> Iterator[HistoryStep]:
    """Searches a commit and its ancestors, nearest first, for changes of exactly the file `path`. Raises Unavailable if
    one is not finished."""
    newest = commits.resolve(conn, start)
    for before, seq in enumerate(commit_rows.line(conn, newest.seq)):
        info = commits.by_seq(conn, seq)
        if info.finished is None:
            what = ("pfs:commit", info.commit.id, "commit not finished")
            raise Unavailable(f"commit {info.commit} not finished", what)
        yield HistoryStep(info.commit, before, FileSet(conn, contents.diff_layers(conn, info)).mentions(path))


def next_on(conn: sqlite3.Connection, branch: Branch, origin: str, after: int) -> CommitInfo | None:
    """The oldest commit after sequence number `after` on a branch, or in the whole repo if the branch has no name."""
    row = conn.execute(
        "SELECT seq FROM commits WHERE repo = :repo AND seq > :after AND (:branch = '' OR branch = :branch) "
        "AND (:origin = '' OR origin = :origin) ORDER BY seq LIMIT 1",
        {"repo": lookup.repo_id(conn, branch.repo), "after": after, "branch": branch.name, "origin": origin},
    ).fetchone()
    return commits.by_seq(conn, row[0]) if row else None


def has_reached(conn: sqlite3.Connection, info: CommitInfo, state: str) -> bool:
    """Whether a commit is at least STARTED, READY (its provenance is finished), FINISHING or FINISHED."""
    if state == "READY" and info.finished is None:
        return all(commits.is_over(conn, each) for each in info.provenance)
    if state == "FINISHING":
        return info.finishing is not None
    return state in ("STARTED", "READY") or info.finished is not None
