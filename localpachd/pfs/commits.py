"""Commits: starting, finishing, resolving and deleting them. Knows nothing of their content; see `contents`."""

import json
import sqlite3
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from localpachd import ids
from localpachd.errors import NotFound, PachError, prefixed
from localpachd.pfs import commit_rows, contents, lookup, names
from localpachd.pfs.commit_rows import SELECT, decoded
from localpachd.pfs.pfs_entities import META, Branch, Commit, CommitInfo, Repo
from localpachd.pfs.transaction import Transaction


def insert(
    txn: Transaction, branch: Branch, origin: str, parent: int | None, provenance: list[int], description: str = ""
) -> int:
    """Adds an open commit with the transaction's id to the branch's repo and returns its sequence number. The caller
    moves the branch's head."""
    repo = branch.repo
    made = txn.conn.execute(
        "INSERT INTO commits (repo, id, branch, origin, description, parent, started) "
        "SELECT id, ?, ?, ?, ?, ?, ? FROM repos WHERE project = ? AND name = ? AND type = ? "
        "ON CONFLICT (repo, id) DO NOTHING",
        (txn.id, branch.name, origin, description, parent, txn.now, repo.project, repo.name, repo.type),
    )
    if not made.rowcount:
        lookup.repo_id(txn.conn, repo)
        raise taken(Commit(repo, txn.id))
    seq = made.lastrowid
    assert seq is not None
    _add_provenance(txn, seq, provenance)
    txn.opened.append(seq)
    return seq


def taken(made: Commit) -> PachError:
    """The error for a second commit in a repo and a commit set."""
    return PachError(
        f"inconsistent dependencies: cannot create commit from {made}; repo ({made.repo.name}) "
        "already has a commit in this transaction"
    )


def set_provenance(txn: Transaction, seq: int, provenance: Sequence[int]) -> None:
    """Replaces the provenance of a commit, given by sequence numbers."""
    txn.conn.execute("DELETE FROM commit_provenance WHERE commit_seq = ?", (seq,))
    _add_provenance(txn, seq, provenance)


def _add_provenance(txn: Transaction, seq: int, provenance: Sequence[int]) -> None:
    if provenance:
        txn.conn.execute(
            "INSERT OR IGNORE INTO commit_provenance (commit_seq, upstream, position) "
            "SELECT ?, value, key FROM json_each(?)",
            (seq, json.dumps(list(provenance))),
        )


def start(txn: Transaction, branch: Branch, parent: Commit | None = None, description: str = "") -> CommitInfo:
    """Opens a commit on a branch, creating the branch if it does not exist. The parent must be finished."""
    row, read = check_start(txn.conn, branch, txn.spout)
    with prefixed("parent commit not found"):
        above = resolve(txn.conn, parent) if parent is not None else by_seq(txn.conn, row["head"]) if row else None
    if above is not None and above.finishing is None:
        raise PachError(f"parent commit {above.commit} has not been finished")
    seq = insert(txn, branch, "USER", above.seq if above else None, read, description)
    if row:
        branch_id = row["id"]
        txn.conn.execute("UPDATE branches SET head = ? WHERE id = ?", (seq, branch_id))
    else:
        branch_id = txn.conn.execute(
            "INSERT INTO branches (repo, name, head, created) VALUES (?, ?, ?, ?)",
            (lookup.repo_id(txn.conn, branch.repo), branch.name, seq, txn.now),
        ).lastrowid
    txn.moved.append(branch_id)
    return by_seq(txn.conn, seq)


def check_start(conn: sqlite3.Connection, branch: Branch, spout: Branch | None) -> tuple[sqlite3.Row | None, list[int]]:
    """The branch's row (None if it does not exist) and the heads of the branches in its provenance. Refuses an output
    branch, except to the spout whose output it is, and a name or repo that is not valid."""
    if not branch.name:
        raise PachError("branch must be specified")
    names.check_branch(branch.name)
    row = lookup.find_branch(conn, branch)
    if row is None:
        lookup.repo_id(conn, branch.repo)
        return None, []
    read = lookup.heads_above(conn, row["id"])
    if read and branch != spout:
        raise PachError(f"cannot start a commit on an output branch: {branch}")
    return row, read


def finish(txn: Transaction, info: CommitInfo, error: str = "", description: str = "") -> CommitInfo:
    """Closes a commit and completes it or, in a late transaction, leaves that to the finisher. With an `error`, it is
    not validated, and later commits are not based on it."""
    contents.check_open(info)
    description = description or info.description
    done = txn.conn.execute(
        "UPDATE commits SET finishing = ?, error = ?, description = ? WHERE seq = ? AND finishing IS NULL",
        (txn.now, error, description, info.seq),
    )
    if not done.rowcount:
        raise contents.already_finished(info)
    txn.changed.add(info.commit.repo)
    closed = replace(info, finishing=txn.now, error=error, description=description)
    return closed if txn.late else complete(txn, closed)


def complete(txn: Transaction, info: CommitInfo) -> CommitInfo:
    """Finishes a closed commit: validates its content (a fault becomes its error) and pins its layers. Raises
    UnfinishedBase if the commit that it stands on is not finished."""
    error, size = (info.error, None) if info.error else contents.pin_layers(txn, info)
    txn.conn.execute(
        "UPDATE commits SET finished = ?, error = ?, size = ? WHERE seq = ?", (txn.now, error, size, info.seq)
    )
    txn.finished.append(info.seq)
    return replace(info, finished=txn.now, error=error, size=size)


def finishing(conn: sqlite3.Connection) -> list[CommitInfo]:
    """The commits that are closed but not finished, oldest first."""
    rows = conn.execute(f"{SELECT} WHERE c.finishing IS NOT NULL AND c.finished IS NULL ORDER BY c.seq")
    return [decoded(row) for row in rows]


def finish_by_user(txn: Transaction, commit: Commit, error: str, description: str, force: bool) -> None:
    """Closes a commit as `finish` does. Refuses a job's commits unless `force`."""
    info = resolve(txn.conn, commit)
    made_by_job = lookup.find_repo(txn.conn, Repo(info.commit.repo.project, info.commit.repo.name, META)) is not None
    if info.finishing is None and info.provenance and made_by_job and not force:
        raise PachError("cannot finish a pipeline output or meta commit, use 'stop job' instead")
    finish(txn, info, error, description)


def clear(txn: Transaction, commit: Commit) -> None:
    """Removes everything written into an open commit."""
    info = resolve(txn.conn, commit)
    if info.finishing is not None:
        raise PachError("cannot clear finished commit")
    txn.conn.execute("DELETE FROM commit_layers WHERE commit_seq = ?", (info.seq,))


def by_seq(conn: sqlite3.Connection, seq: int) -> CommitInfo:
    """The commit with this sequence number, which must exist."""
    return decoded(conn.execute(f"{SELECT} WHERE c.seq = ?", (seq,)).fetchone())


def by_seqs(conn: sqlite3.Connection, seqs: Sequence[int]) -> list[CommitInfo]:
    """The commits with these sequence numbers, oldest first; unknown numbers are skipped."""
    rows = conn.execute(
        f"{SELECT} WHERE c.seq IN (SELECT value FROM json_each(?)) ORDER BY c.seq", (json.dumps(list(seqs)),)
    )
    return [decoded(row) for row in rows]


def find(conn: sqlite3.Connection, repo: Repo, commit_set: str) -> CommitInfo | None:
    """The commit of exactly this repo and id, or None."""
    row = conn.execute(
        f"{SELECT} WHERE r.project = ? AND r.name = ? AND r.type = ? AND c.id = ?",
        (repo.project, repo.name, repo.type, commit_set),
    ).fetchone()
    return decoded(row) if row else None


def is_over(conn: sqlite3.Connection, commit: Commit) -> bool:
    """Whether a commit is finished or deleted."""
    info = find(conn, commit.repo, commit.id)
    return info is None or info.finished is not None


def resolve(conn: sqlite3.Connection, commit: Commit) -> CommitInfo:
    """The commit that a reference names: by id, by branch, or by ancestry (`master^2`, `master.1`). If the repo has no
    commit in that commit set, the commit in the set's provenance."""
    if not commit.id and not commit.branch:
        raise PachError("cannot resolve commit with no ID or branch")
    name, steps = names.parse_ancestry(commit.id)
    branch = commit.branch
    if name and not ids.is_id(name):
        if branch:
            raise PachError(f"invalid commit ID given with a branch ({Branch(commit.repo, branch)}): {name}\n")
        name, branch = "", name
    if name:
        found = _by_id(conn, commit.repo, name)
    else:
        found = by_seq(conn, lookup.branch_row(conn, Branch(commit.repo, branch))["head"])
    return _ancestor(conn, commit, found, steps) if steps else found


def _by_id(conn: sqlite3.Connection, repo: Repo, commit_set: str) -> CommitInfo:
    exact = find(conn, repo, commit_set)
    if exact is not None:
        return exact
    row = conn.execute(
        f"""WITH RECURSIVE above(seq) AS (
                SELECT seq FROM commits WHERE id = ?
                UNION SELECT p.upstream FROM commit_provenance p JOIN above a ON p.commit_seq = a.seq
            ) {SELECT} JOIN above ON above.seq = c.seq
            WHERE r.project = ? AND r.name = ? AND r.type = ? ORDER BY c.seq DESC LIMIT 1""",
        (commit_set, repo.project, repo.name, repo.type),
    ).fetchone()
    if row is None:
        raise NotFound(f"commit {Commit(repo, commit_set)} not found")
    return decoded(row)


def _ancestor(conn: sqlite3.Connection, asked: Commit, start_: CommitInfo, steps: int) -> CommitInfo:
    line = commit_rows.line(conn, start_.seq)
    if steps > 0:
        found = next(islice(line, steps, None), None)
    else:
        oldest = deque(line, maxlen=-steps)
        found = oldest[0] if len(oldest) == -steps else None
    if found is None:
        raise NotFound(f"commit {asked} not found")
    return by_seq(conn, found)


def count_unfinished(conn: sqlite3.Connection) -> int:
    """The number of commits that are open or finishing."""
    return int(conn.execute("SELECT COUNT(*) FROM commits WHERE finished IS NULL").fetchone()[0])


def delete_all_of(txn: Transaction, repo: int) -> None:
    """Deletes every commit of a repo, given by its row. Commits made from them keep their content."""
    rows = txn.conn.execute("SELECT seq FROM commits WHERE repo = ?", (repo,)).fetchall()
    delete(txn, by_seqs(txn.conn, [row[0] for row in rows]))


def delete(txn: Transaction, doomed: Sequence[CommitInfo]) -> None:
    """Deletes the rows of commits. The caller takes care of their children and of the branches that they head."""
    seqs = [info.seq for info in doomed]
    for statement in (
        "DELETE FROM commit_layers WHERE commit_seq = ?",
        "DELETE FROM commit_provenance WHERE commit_seq = ?",
        "DELETE FROM commit_provenance WHERE upstream = ?",
        "DELETE FROM commits WHERE seq = ?",
    ):
        txn.conn.executemany(statement, [(seq,) for seq in seqs])
    txn.opened = [seq for seq in txn.opened if seq not in seqs]
    txn.finished = [seq for seq in txn.finished if seq not in seqs]
    txn.removed.extend(doomed)
