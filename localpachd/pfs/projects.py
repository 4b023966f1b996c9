"""Projects: the namespaces of repos."""

import sqlite3

from localpachd.errors import AlreadyExists, FailedPrecondition, NotFound
from localpachd.pfs import names
from localpachd.pfs.transaction import Transaction
from localpachd.pfs.values import ProjectInfo


def create(txn: Transaction, name: str, description: str = "", update: bool = False) -> None:
    """Makes a project, or with `update` changes its description."""
    names.check_project(name)
    if update:
        changed = txn.conn.execute("UPDATE projects SET description = ? WHERE name = ?", (description, name))
        if changed.rowcount == 0:
            raise NotFound(f'project "{name}" not found')
        return
    if find(txn.conn, name) is not None:
        raise AlreadyExists(f'project "{name}" already exists')
    txn.conn.execute("INSERT INTO projects VALUES (?, ?, ?)", (name, description, txn.now))


def find(conn: sqlite3.Connection, name: str) -> ProjectInfo | None:
    """A project, or None."""
    row = conn.execute("SELECT name, description, created FROM projects WHERE name = ?", (name,)).fetchone()
    return ProjectInfo(*row) if row else None


def inspect(conn: sqlite3.Connection, name: str) -> ProjectInfo:
    """A project; NotFound where there is none."""
    info = find(conn, name)
    if info is None:
        raise NotFound(f'error getting project "{name}": project "{name}" not found')
    return info


def list_all(conn: sqlite3.Connection) -> list[ProjectInfo]:
    """Every project, oldest first."""
    return [
        ProjectInfo(*row)
        for row in conn.execute("SELECT name, description, created FROM projects ORDER BY created, name")
    ]


def delete(txn: Transaction, name: str) -> None:
    """Deletes an empty project; FailedPrecondition while it holds repos."""
    if find(txn.conn, name) is None:
        raise NotFound(f'project "{name}" not found')
    row = txn.conn.execute("SELECT name, type FROM repos WHERE project = ? ORDER BY id LIMIT 1", (name,)).fetchone()
    if row:
        repo = f"{name}/{row[0]}" + ("" if row[1] == "user" else f".{row[1]}")
        raise FailedPrecondition(f"cannot delete project {name}: repo {repo} still exists; delete it first")
    txn.conn.execute("DELETE FROM projects WHERE name = ?", (name,))
