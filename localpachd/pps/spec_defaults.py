"""Defaults of specifications, for the server and for each project, stored as they were set. Merges nothing."""

import sqlite3

from localpachd.pfs.transaction import Transaction
from localpachd.pps.pps_entities import SpecDefaults

SERVER = ""
"""In the place of a project's name."""


def read(conn: sqlite3.Connection, project: str = SERVER) -> SpecDefaults:
    """The defaults of a project or of the server; an empty object if none were set."""
    row = conn.execute("SELECT spec, created FROM defaults WHERE project = ?", (project,)).fetchone()
    return SpecDefaults(*row) if row else SpecDefaults()


def write(txn: Transaction, spec: str, project: str = SERVER) -> None:
    """Sets the defaults of a project or of the server. They are deleted with their project."""
    txn.conn.execute(
        "INSERT OR REPLACE INTO defaults (project, spec, created) VALUES (?, ?, ?)", (project, spec, txn.now)
    )
