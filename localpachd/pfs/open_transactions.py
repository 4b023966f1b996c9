"""Transactions that clients keep open, until they finish or delete them: there is no other end to one.

What a transaction holds is bytes here; `api.transactions` knows what they mean.
"""

import sqlite3

from localpachd.errors import NotFound
from localpachd.pfs.transaction import Transaction


def add(txn: Transaction, id_: str, content: bytes) -> None:
    """Keeps a new open transaction."""
    txn.conn.execute("INSERT INTO transactions (id, content) VALUES (?, ?)", (id_, content))


def read(conn: sqlite3.Connection, id_: str) -> bytes:
    """What an open transaction holds; NotFound where there is none."""
    row = conn.execute("SELECT content FROM transactions WHERE id = ?", (id_,)).fetchone()
    if row is None:
        raise NotFound(f"transactions {id_} not found")
    content: bytes = row["content"]
    return content


def listed(conn: sqlite3.Connection) -> list[bytes]:
    """What each open transaction holds, newest first."""
    return [row[0] for row in conn.execute("SELECT content FROM transactions ORDER BY seq DESC")]


def write(txn: Transaction, id_: str, content: bytes) -> None:
    """Keeps other content for an open transaction."""
    txn.conn.execute("UPDATE transactions SET content = ? WHERE id = ?", (content, id_))


def remove(txn: Transaction, id_: str) -> None:
    """Forgets an open transaction; NotFound where there is none."""
    read(txn.conn, id_)
    txn.conn.execute("DELETE FROM transactions WHERE id = ?", (id_,))


def remove_all(txn: Transaction) -> None:
    """Forgets every open transaction."""
    txn.conn.execute("DELETE FROM transactions")
