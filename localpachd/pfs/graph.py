"""The provenance graph of branches, by row id. Only direct edges are stored; closures are computed."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence


class Provenance:
    """The direct provenance of every branch, read at once: a few edges for each pipeline."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._above: dict[int, list[int]] = {}
        self._below: dict[int, list[int]] = {}
        rows = conn.execute("SELECT branch, upstream FROM branch_provenance ORDER BY branch, position")
        for branch, above in rows:
            self._above.setdefault(branch, []).append(above)
            self._below.setdefault(above, []).append(branch)

    def direct(self, branch: int) -> list[int]:
        """The branches in this one's direct provenance, in the order given by users."""
        return self._above.get(branch, [])

    def upstream(self, branch: int) -> set[int]:
        """Every branch that this one depends on."""
        return _reached((self._above,), [branch])

    def downstream(self, *branches: int) -> set[int]:
        """Every branch that depends on one of these."""
        return _reached((self._below,), branches)

    def connected(self, branch: int) -> set[int]:
        """Every branch connected with this one in either direction, itself included."""
        return _reached((self._above, self._below), [branch]) | {branch}


def _reached(edges: Sequence[Mapping[int, Iterable[int]]], starts: Iterable[int]) -> set[int]:
    """The branches that edges of any of these kinds lead to, however many."""
    found: set[int] = set()
    pending = list(starts)
    while pending:
        each = pending.pop()
        for kind in edges:
            fresh = set(kind.get(each, ())) - found
            found |= fresh
            pending.extend(fresh)
    return found


def rewire(conn: sqlite3.Connection, branch: int, provenance: Iterable[int]) -> None:
    """Replaces a branch's direct provenance."""
    conn.execute("DELETE FROM branch_provenance WHERE branch = ?", (branch,))
    conn.executemany(
        "INSERT OR IGNORE INTO branch_provenance (branch, upstream, position) VALUES (?, ?, ?)",
        [(branch, each, position) for position, each in enumerate(provenance)],
    )
