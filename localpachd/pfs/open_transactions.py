"""Transactions that clients keep open until they finish or delete them; they do not expire.

Their content is bytes here; `api.transactions` knows its meaning.
"""

import sqlite3

from localpachd.errors import NotFound
from localpachd.pfs.transaction import Transaction


def add(txn: Transaction, id_: str, content: bytes) -> None:
    """Keeps a new open transaction."""
    txn.conn.execute("INSERT INTO transactions (id, content) VALUES (?, ?)", (id_, content))


def read(conn: sqlite3.Connection, id_: str) -> bytes:
    """The content of an open transaction; NotFound if it does not exist."""
    row = conn.execute("SELECT content FROM transactions WHERE id = ?", (id_,)).fetchone()
    if row is None:
        raise NotFound(f"transactions {id_} not found")
    content: bytes = row["content"]
    return content


def listed(conn: sqlite3.Connection) -> list[bytes]:
    """The content of each open transaction, newest first."""
    return [row[0] for row in conn.execute("SELECT content FROM transactions ORDER BY seq DESC")]


def write(txn: Transaction, id_: str, content: bytes) -> None:
    """Replaces the content of an open transaction."""
    txn.conn.execute("UPDATE transactions SET content = ? WHERE id = ?", (content, id_))


def remove(txn: Transaction, id_: str) -> None:
    """Deletes an open transaction; NotFound if it does not exist."""
    read(txn.conn, id_)
    txn.conn.execute("DELETE FROM transactions WHERE id = ?", (id_,))


def remove_all(txn: Transaction) -> None:
    """Deletes every open transaction."""
    txn.conn.execute("DELETE FROM transactions")
