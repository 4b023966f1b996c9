"""Values that clients cache on the server by key, and the file sets that must not expire before them."""

from localpachd.errors import NotFound
from localpachd.pfs.files import temporary_filesets
from localpachd.pfs.transaction import Transaction

_LIMIT = 10_000
"""The most values kept; the least recently used one is evicted."""


def put(txn: Transaction, key: str, value: bytes, held: list[str], tag: str) -> None:
    """Keeps a value, unless the key has one; the file sets `held` do not expire while it is kept."""
    found = [temporary_filesets.parse(each) for each in held]
    for each in found:
        temporary_filesets.find(txn.conn, each, txn.now)
    made = txn.conn.execute("INSERT OR IGNORE INTO cache VALUES (?, ?, ?, ?)", (key, value, tag, txn.now))
    if not made.rowcount:
        return
    txn.conn.executemany("INSERT OR IGNORE INTO cached_filesets VALUES (?, ?)", [(key, each) for each in found])
    txn.conn.execute(
        "DELETE FROM cache WHERE key IN (SELECT key FROM cache ORDER BY used DESC, key LIMIT -1 OFFSET ?)", (_LIMIT,)
    )


def get(txn: Transaction, key: str) -> bytes:
    """The value of a key; NotFound if it has none."""
    row = txn.conn.execute("UPDATE cache SET used = ? WHERE key = ? RETURNING value", (txn.now, key)).fetchone()
    if row is None:
        raise NotFound(f'nothing is cached under the key "{key}"')
    value: bytes = row["value"]
    return value


def clear(txn: Transaction, tag_prefix: str) -> None:
    """Deletes every value whose tag begins with this."""
    txn.conn.execute("DELETE FROM cache WHERE substr(tag, 1, length(?1)) = ?1", (tag_prefix,))
