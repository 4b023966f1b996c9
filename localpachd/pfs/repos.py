"""Repos: rows by project, name and type. A pipeline's spec and meta repos are siblings of its user repo."""

import sqlite3
from collections.abc import Collection, Sequence

from localpachd.errors import AlreadyExists, NotFound, PachError, prefixed
from localpachd.pfs import branches, commit_rows, commits, lookup, metadata, names, projects
from localpachd.pfs.pfs_entities import SPEC, USER, Branch, Repo, RepoInfo
from localpachd.pfs.transaction import Transaction
from speclang.names import DEFAULT_PROJECT


def create(txn: Transaction, repo: Repo, description: str = "", update: bool = False) -> None:
    """Creates a repo; with `update`, an existing one only gets the description."""
    names.check_repo(repo.name)
    if projects.find(txn.conn, repo.project) is None:
        raise NotFound(f'cannot find project "{repo.project}": project "{repo.project}" not found')
    if lookup.find_repo(txn.conn, repo) is not None:
        if not update:
            raise AlreadyExists(f"repo {repo} already exists")
        txn.conn.execute("UPDATE repos SET description = ? WHERE id = ?", (description, lookup.repo_id(txn.conn, repo)))
        return
    user = Repo(repo.project, repo.name)
    if repo.type != USER and lookup.find_repo(txn.conn, user) is None:
        raise NotFound(f"cannot create a system repo without a corresponding 'user' repo: repo {user} not found")
    txn.conn.execute(
        "INSERT INTO repos (project, name, type, description, created) VALUES (?, ?, ?, ?, ?)",
        (repo.project, repo.name, repo.type, description, txn.now),
    )


def exists(conn: sqlite3.Connection, repo: Repo) -> bool:
    return lookup.find_repo(conn, repo) is not None


def inspect(conn: sqlite3.Connection, repo: Repo) -> RepoInfo:
    """The state of a repo; NotFound if it does not exist."""
    row = lookup.repo_id(conn, repo)
    created, description = conn.execute("SELECT created, description FROM repos WHERE id = ?", (row,)).fetchone()
    named = conn.execute("SELECT name FROM branches WHERE repo = ? ORDER BY name", (row,))
    branches_ = tuple(Branch(repo, each[0]) for each in named)
    return RepoInfo(repo, created, description, branches_, _size(conn, row), metadata.read_metadata(conn, "repo", row))


def _size(conn: sqlite3.Connection, row: int) -> int:
    """The size in bytes of the newest finished commit on master."""
    seq = conn.execute("SELECT head FROM branches WHERE repo = ? AND name = 'master'", (row,)).fetchone()
    found = commit_rows.nearest_whole(conn, seq[0]) if seq else None
    return int(found["size"]) if found is not None else 0


def list_all(conn: sqlite3.Connection, type_: str = "", projects_: Collection[str] = ()) -> list[RepoInfo]:
    """Repos, newest first; an empty type means every type, no projects mean all of them."""
    rows = conn.execute("SELECT project, name, type FROM repos ORDER BY id DESC").fetchall()
    wanted = [Repo(*row) for row in rows]
    return [
        inspect(conn, repo)
        for repo in wanted
        if (not type_ or repo.type == type_) and (not projects_ or repo.project in projects_)
    ]


def delete(txn: Transaction, repo: Repo, force: bool = False) -> None:
    """Deletes a repo, if it exists, and for a user repo its system siblings, with all branches and commits. Refused
    while branches elsewhere depend on it, unless `force`."""
    if not exists(txn.conn, repo):
        return
    _delete_all(txn, [repo] if repo.type != USER else _family(txn.conn, repo), force)


def _delete_all(txn: Transaction, doomed: Sequence[Repo], force: bool) -> None:
    txn.changed.update(doomed)
    found = [branch for repo in doomed for branch in branches.of_repo(txn.conn, repo)]
    # Downstream first, so that none prevents the deletion of another.
    for branch in branches.downstream_first(txn.conn, found):
        with prefixed(f"delete branch {branch}"):
            branches.delete(txn, branch, force)
    for row in [lookup.repo_id(txn.conn, repo) for repo in doomed]:
        commits.delete_all_of(txn, row)
        txn.conn.execute("DELETE FROM repos WHERE id = ?", (row,))


def delete_by_user(txn: Transaction, repo: Repo, force: bool = False) -> None:
    """Deletes a repo as `delete` does. Refuses a pipeline's: those are deleted with their pipeline."""
    try:
        _refuse_pipelines(txn.conn, repo)
    except PachError as error:
        raise PachError(f'error checking whether repo "{repo}" can be deleted: {error}') from error
    delete(txn, repo, force)


def delete_many(txn: Transaction, projects_: Collection[str]) -> list[Repo]:
    """Deletes every repo, of any type, in these projects, or in all if none is named; returns them. Refused if one is a
    pipeline's, or if branches elsewhere depend on them."""
    found = [info.repo for info in list_all(txn.conn, "", projects_)]
    for repo in found:
        _refuse_pipelines(txn.conn, repo)
    _delete_all(txn, found, force=False)
    return found


def delete_everything(txn: Transaction) -> None:
    """Deletes every repo and project, and creates the default project again."""
    with prefixed("could not delete all repos"):
        delete_many(txn, ())
    for project in projects.list_all(txn.conn):
        projects.delete(txn, project.name)
    projects.create(txn, DEFAULT_PROJECT)


def _refuse_pipelines(conn: sqlite3.Connection, repo: Repo) -> None:
    # Every pipeline, and nothing else, has a spec repo.
    if exists(conn, Repo(repo.project, repo.name, SPEC)):
        raise PachError("cannot delete a repo associated with a pipeline - delete the pipeline instead")


def _family(conn: sqlite3.Connection, repo: Repo) -> list[Repo]:
    rows = conn.execute("SELECT type FROM repos WHERE project = ? AND name = ? ORDER BY id", (repo.project, repo.name))
    return [Repo(repo.project, repo.name, row[0]) for row in rows]
