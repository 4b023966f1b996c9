"""The provenance graphs of branches and of commits, by row id. Only direct edges are stored; closures are computed."""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

_WHOLE = "SELECT branch, upstream FROM branch_provenance ORDER BY branch, position"
_AROUND = """WITH RECURSIVE below(id) AS (
        SELECT value FROM json_each(?) UNION SELECT p.branch FROM branch_provenance p JOIN below b ON p.upstream = b.id
    ), above(id) AS (
        SELECT id FROM below UNION SELECT p.upstream FROM branch_provenance p JOIN above a ON p.branch = a.id
    ) SELECT p.branch, p.upstream FROM branch_provenance p JOIN above a ON p.branch = a.id
    ORDER BY p.branch, p.position"""

T = TypeVar("T")

MAX_DEPTH = 1000
"""The default limit of a walk's depth."""
MAX_FOUND = 10_000
"""The default limit of a walk's results."""


class ProvenanceGraph:
    """The direct provenance of branches, read at once: a few edges for each pipeline."""

    def __init__(self, conn: sqlite3.Connection, around: Iterable[int] | None = None) -> None:
        """Reads the edges of all branches or, with `around`, those below these branches and all edges above these."""
        self._above: dict[int, list[int]] = {}
        self._below: dict[int, list[int]] = {}
        rows = conn.execute(_WHOLE) if around is None else conn.execute(_AROUND, (json.dumps(list(around)),))
        for branch, above in rows:
            self._above.setdefault(branch, []).append(above)
            self._below.setdefault(above, []).append(branch)

    def direct(self, branch: int) -> list[int]:
        """The branches in this one's direct provenance, in the order given by users."""
        return self._above.get(branch, [])

    def upstream(self, branch: int) -> set[int]:
        """Every branch that this one depends on."""
        return reached(self._above, [branch])

    def downstream(self, *branches: int) -> set[int]:
        """Every branch that depends on one of these."""
        return reached(self._below, branches)


def connected(conn: sqlite3.Connection, branch: int) -> set[int]:
    """Every branch connected with this one in either direction, itself included."""
    rows = conn.execute(
        """WITH RECURSIVE found(id) AS (
            SELECT ?
            UNION SELECT p.upstream FROM branch_provenance p JOIN found f ON p.branch = f.id
            UNION SELECT p.branch FROM branch_provenance p JOIN found f ON p.upstream = f.id
        ) SELECT id FROM found""",
        (branch,),
    )
    return {row[0] for row in rows}


def reached(edges: Mapping[T, Iterable[T]], starts: Iterable[T]) -> set[T]:
    """All that edges lead to from these starts, directly or not."""
    found: set[T] = set()
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


@dataclass(frozen=True, slots=True)
class GraphEdges:
    """A table of edges, and its columns from which and to which a walk goes."""

    table: str
    near: str
    far: str


ABOVE_COMMIT = GraphEdges("commit_provenance", "commit_seq", "upstream")
BELOW_COMMIT = GraphEdges("commit_provenance", "upstream", "commit_seq")
ABOVE_BRANCH = GraphEdges("branch_provenance", "branch", "upstream")
BELOW_BRANCH = GraphEdges("branch_provenance", "upstream", "branch")


def walk(conn: sqlite3.Connection, edges: GraphEdges, start: int, depth: int, most: int) -> list[int]:
    """The rows that a walk finds from a start, nearest first, up to a depth and a number."""
    table, near, far = edges.table, edges.near, edges.far
    rows = conn.execute(
        f"""WITH RECURSIVE reached(id, depth) AS (
                SELECT {far}, 1 FROM {table} WHERE {near} = :start
                UNION SELECT p.{far}, r.depth + 1 FROM {table} p JOIN reached r ON p.{near} = r.id
                WHERE r.depth < :depth
            ) SELECT id FROM reached GROUP BY id ORDER BY MIN(depth), id LIMIT :most""",
        {"start": start, "depth": depth, "most": most},
    )
    return [row[0] for row in rows]
