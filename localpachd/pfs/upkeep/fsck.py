"""Consistency checks: branches, commits and layers that contradict each other, and output of deleted datums.

A healthy server has none. The texts are the real server's (`src/server/pfs/server/driver_fsck.go`).
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence

from localpachd.errors import PachError
from localpachd.pfs import commit_rows, commits, contents, lookup, provenance_graph
from localpachd.pfs.pfs_entities import META, Branch, Commit, CommitInfo, Repo
from localpachd.pfs.transaction import Transaction
from localpachd.storage import garbage_collector
from localpachd.storage.filesets import chunk_hashes

_BRANCHES = """SELECT b.id, b.head, c.seq FROM branches b
    LEFT JOIN commits c ON c.seq = b.head AND c.repo = b.repo ORDER BY b.id"""
_PARENTLESS = """SELECT r.project, r.name, r.type, c.id, c.parent FROM commits c JOIN repos r ON r.id = c.repo
    LEFT JOIN commits p ON p.seq = c.parent AND p.repo = c.repo
    WHERE c.parent IS NOT NULL AND p.seq IS NULL ORDER BY c.seq"""
_EMPTIED = """SELECT DISTINCT l.commit_seq FROM commit_layers l JOIN commits c ON c.seq = l.commit_seq
    WHERE l.layer NOT IN (SELECT id FROM layers) ORDER BY l.commit_seq"""
_FILES = """SELECT r.project, r.name, r.type, c.id, e.path, e.chunks FROM commit_layers l
    JOIN commits c ON c.seq = l.commit_seq JOIN repos r ON r.id = c.repo JOIN entries e ON e.layer = l.layer
    WHERE e.chunks IS NOT NULL ORDER BY c.seq, e.path"""
_DANGLING = "SELECT DISTINCT commit_seq FROM commit_layers WHERE commit_seq NOT IN (SELECT seq FROM commits)"


def check(conn: sqlite3.Connection) -> Iterator[str]:
    """A text for each contradiction; then PachError if content belongs to no commit, which `fix` removes."""
    provenance = provenance_graph.ProvenanceGraph(conn)
    for row in conn.execute(_BRANCHES).fetchall():
        yield from _check_branch(conn, row, provenance.direct(row["id"]))
    for row in conn.execute(_PARENTLESS).fetchall():
        commit = Commit(Repo(*row[:3]), row["id"])
        yield _lost(commit.repo, row["parent"], f"parent commit of {commit}")
    for row in conn.execute(_EMPTIED).fetchall():
        yield f"consistency error: content of the commit {commits.by_seq(conn, row[0]).commit} could not be found"
    dangling = [str(row[0]) for row in conn.execute(_DANGLING)]
    if dangling:
        raise PachError(f"commits with dangling references: [{' '.join(dangling)}]")


def everything(conn: sqlite3.Connection, problem: Callable[[bytes], str]) -> Iterator[str]:
    """The texts of `check`, its error included, then those of `unreadable`."""
    try:
        yield from check(conn)
    except PachError as error:
        yield str(error)
    yield from unreadable(conn, problem)


def unreadable(conn: sqlite3.Connection, problem: Callable[[bytes], str]) -> Iterator[str]:
    """A text for each file of a commit, named by the first one that holds it, with a chunk of which `problem` says what
    is wrong with it ("" for nothing), and for each such chunk that only file sets hold."""
    seen: set[bytes] = set()
    bad: dict[bytes, str] = {}
    for digest in garbage_collector.live_chunks(conn):
        if digest not in seen:
            seen.add(digest)
            if text := problem(digest):
                bad[digest] = text
    if not bad:
        return
    told: set[tuple[Repo, str, bytes]] = set()
    for row in conn.execute(_FILES):
        repo, path = Repo(row["project"], row["name"], row["type"]), row["path"]
        for digest in dict.fromkeys(chunk_hashes(row["chunks"])):
            if digest in bad and (repo, path, digest) not in told:
                told.add((repo, path, digest))
                yield f"{Commit(repo, row['id'])}:{path} cannot be read: {bad[digest]}"
    for digest in sorted(bad.keys() - {each for _, _, each in told}):
        yield f"a file set cannot be read: {bad[digest]}"


def fix(txn: Transaction) -> None:
    """Removes content that belongs to no commit: the one contradiction that can be fixed."""
    txn.conn.execute(f"DELETE FROM commit_layers WHERE commit_seq IN ({_DANGLING})")


def _check_branch(conn: sqlite3.Connection, branch: sqlite3.Row, provenance: Sequence[int]) -> Iterator[str]:
    named = lookup.branch_by_id(conn, branch["id"])
    head = branch["head"]
    if branch["seq"] is None:
        yield _lost(named.repo, head, f"head commit of {named}")
        return
    below = {row[0] for row in conn.execute("SELECT upstream FROM commit_provenance WHERE commit_seq = ?", (head,))}
    for each in provenance:
        row = conn.execute("SELECT head FROM branches WHERE id = ?", (each,)).fetchone()
        if row is None:
            yield f"consistency error: a branch in the provenance of the branch {named} could not be found"
        elif row["head"] not in below:
            yield _mismatch(named, lookup.branch_by_id(conn, each))


def _mismatch(branch: Branch, above: Branch) -> str:
    return f"consistency error: parent branch {above} commit is not in direct provenance of head of branch {branch}"


def _lost(repo: Repo, seq: int, where: str) -> str:
    return f"consistency error: the commit {repo}@{seq} could not be found while checking {where}"


def zombies(conn: sqlite3.Connection, output: Commit) -> Iterator[str]:
    """A text for each file in a pipeline's output commit that belongs to no datum in its meta commit."""
    info = commits.resolve(conn, output)
    repo = info.commit.repo
    known = contents.fileset(conn, commits.resolve(conn, Commit(Repo(repo.project, repo.name, META), info.commit.id)))
    left: dict[str, list[str]] = {}
    living: dict[str, bool] = {}
    for file in contents.fileset(conn, info).walk():
        if file.tag not in living:
            living[file.tag] = bool(known.get(f"/meta/{file.tag}/meta"))
        if not living[file.tag]:
            left.setdefault(file.tag, []).append(file.path)
    for tag in sorted(left):
        yield from (f"stale datum {tag} had file {path}" for path in left[tag])


def outputs(conn: sqlite3.Connection) -> Iterator[Commit]:
    """The newest output commit on master of each pipeline that finished without error."""
    for row in conn.execute("SELECT project, name FROM repos WHERE type = ? ORDER BY id DESC", (META,)).fetchall():
        head: CommitInfo = commits.resolve(conn, Commit(Repo(*row), branch="master"))
        whole = commit_rows.nearest_whole(conn, head.seq)
        if whole is not None:
            yield commits.by_seq(conn, whole["seq"]).commit
