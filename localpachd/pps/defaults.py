"""The defaults of specifications, of the whole server and of each project, kept as they were set. Merges nothing."""

import sqlite3

from localpachd.pfs.transaction import Transaction
from localpachd.pps.entities import Defaults

SERVER = ""
"""In the place of a project's name."""


def read(conn: sqlite3.Connection, project: str = SERVER) -> Defaults:
    """Those of a project, or of the server; none are an empty object."""
    row = conn.execute("SELECT spec, created FROM defaults WHERE project = ?", (project,)).fetchone()
    return Defaults(*row) if row else Defaults()


def write(txn: Transaction, spec: str, project: str = SERVER) -> None:
    """Sets those of a project, or of the server. They go with their project."""
    txn.conn.execute(
        "INSERT OR REPLACE INTO defaults (project, spec, created) VALUES (?, ?, ?)", (project, spec, txn.now)
    )
