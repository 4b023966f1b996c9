"""The provenance graph of branches, by row id. Only direct edges are stored; closures are computed."""

import sqlite3
from collections.abc import Iterable, Mapping


def direct(conn: sqlite3.Connection, branch: int) -> list[int]:
    """The branches in this one's direct provenance."""
    rows = conn.execute("SELECT upstream FROM branch_provenance WHERE branch = ? ORDER BY position", (branch,))
    return [row[0] for row in rows]


def upstream(conn: sqlite3.Connection, branch: int) -> list[int]:
    """Every branch that this one depends on, itself excluded, in order of creation."""
    return _closure(conn, branch, "branch", "upstream")


def downstream(conn: sqlite3.Connection, branch: int) -> list[int]:
    """Every branch that depends on this one, itself excluded, in order of creation."""
    return _closure(conn, branch, "upstream", "branch")


def _closure(conn: sqlite3.Connection, branch: int, near: str, far: str) -> list[int]:
    rows = conn.execute(
        f"""WITH RECURSIVE reached(id) AS (
                SELECT {far} FROM branch_provenance WHERE {near} = :start
                UNION SELECT p.{far} FROM branch_provenance p JOIN reached r ON p.{near} = r.id
            ) SELECT id FROM reached WHERE id != :start ORDER BY id""",
        {"start": branch},
    )
    return [row[0] for row in rows]


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
        """The branches in this one's direct provenance."""
        return self._above.get(branch, [])

    def upstream(self, branch: int) -> set[int]:
        """Every branch that this one depends on."""
        return _reached(self._above, [branch])

    def downstream(self, branches: Iterable[int]) -> set[int]:
        """Every branch that depends on one of these."""
        return _reached(self._below, branches)


def _reached(edges: Mapping[int, Iterable[int]], starts: Iterable[int]) -> set[int]:
    found: set[int] = set()
    pending = list(starts)
    while pending:
        fresh = set(edges.get(pending.pop(), ())) - found
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


def component(conn: sqlite3.Connection, branch: int) -> set[int]:
    """Every branch connected with this one in either direction, itself included."""
    seen: set[int] = set()
    frontier = {branch}
    while frontier:
        seen |= frontier
        near: set[int] = set()
        for each in frontier:
            rows = conn.execute(
                "SELECT upstream FROM branch_provenance WHERE branch = :b "
                "UNION SELECT branch FROM branch_provenance WHERE upstream = :b",
                {"b": each},
            )
            near.update(row[0] for row in rows)
        frontier = near - seen
    return seen
