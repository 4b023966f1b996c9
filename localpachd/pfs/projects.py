"""Projects: the namespaces of repos."""

import sqlite3

from localpachd.errors import AlreadyExists, FailedPrecondition, NotFound
from localpachd.pfs import metadata, names
from localpachd.pfs.pfs_entities import ProjectInfo, Repo
from localpachd.pfs.transaction import Transaction


def create(txn: Transaction, name: str, description: str = "", update: bool = False) -> None:
    """Creates a project; with `update`, an existing one gets the description."""
    names.check_project(name)
    if find(txn.conn, name) is None:
        txn.conn.execute("INSERT INTO projects VALUES (?, ?, ?)", (name, description, txn.now))
    elif update:
        txn.conn.execute("UPDATE projects SET description = ? WHERE name = ?", (description, name))
    else:
        raise AlreadyExists(f'could not create project: project "{name}" already exists')


def find(conn: sqlite3.Connection, name: str) -> ProjectInfo | None:
    row = conn.execute("SELECT name, description, created FROM projects WHERE name = ?", (name,)).fetchone()
    return _info(conn, row) if row else None


def inspect(conn: sqlite3.Connection, name: str) -> ProjectInfo:
    """A project; NotFound if it does not exist."""
    info = find(conn, name)
    if info is None:
        raise NotFound(f'error getting project "{name}": project "{name}" not found')
    return info


def list_all(conn: sqlite3.Connection) -> list[ProjectInfo]:
    """Every project, oldest first."""
    rows = conn.execute("SELECT name, description, created FROM projects ORDER BY created, name")
    return [_info(conn, row) for row in rows.fetchall()]


def _info(conn: sqlite3.Connection, row: sqlite3.Row) -> ProjectInfo:
    return ProjectInfo(
        row["name"], row["description"], row["created"], metadata.read_metadata(conn, "project", row["name"])
    )


def delete(txn: Transaction, name: str) -> None:
    """Deletes an empty project; FailedPrecondition while it holds repos."""
    names.check_project(name)
    rows = txn.conn.execute("SELECT project, name, type FROM repos WHERE project = ? ORDER BY id DESC", (name,))
    left = "\n".join(f"repo {Repo(*row)} still exists" for row in rows)
    if left:
        raise FailedPrecondition(f"cannot delete project {name}: {left}")
    if txn.conn.execute("DELETE FROM projects WHERE name = ?", (name,)).rowcount == 0:
        raise NotFound(f'delete project "{name}": project "{name}" not found')
