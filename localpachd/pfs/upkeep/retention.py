"""Old commit sets that nothing needs: chosen by a pure look at a snapshot, and squashed one by one.

Kept, whatever their age, are the commit sets of: heads of branches, and below a failed head the newest commit without
error; commits whose description contains "#keep"; commits that are open, or without children, or whose children are
open; versions of pipelines; and all that a kept commit was made from. So each kept commit keeps its whole provenance,
and squashing never loses the last version of a file.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from localpachd.errors import PachError
from localpachd.ids import CHUNK_SIZE
from localpachd.pfs import commit_removal, lineage
from localpachd.pfs.pfs_entities import SPEC
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.transaction import Transaction
from localpachd.pfs.upkeep.commit_ages import newest_of_age
from localpachd.storage.filesets import unpacked

MARK = "#keep"
"""In a commit's description: its set is kept."""

_NEEDED = """SELECT DISTINCT c.id FROM commits c JOIN repos r ON r.id = c.repo
    WHERE c.seq > :limit OR c.finished IS NULL
    OR instr(c.description, :mark) OR (r.type = :spec AND c.origin = 'USER')
    OR c.seq IN (SELECT head FROM branches)
    OR NOT EXISTS (SELECT 1 FROM commits k WHERE k.parent = c.seq)
    OR EXISTS (SELECT 1 FROM commits k WHERE k.parent = c.seq AND k.finished IS NULL)"""
_EDGES = """SELECT DISTINCT below.id, above.id FROM commit_provenance p
    JOIN commits below ON below.seq = p.commit_seq JOIN commits above ON above.seq = p.upstream
    WHERE below.id <> above.id"""
_LEAVES = """SELECT c.seq FROM branches b JOIN commits c ON c.seq = b.head WHERE c.error <> ''"""


@dataclass(frozen=True, slots=True)
class OldCommitSet:
    """A commit set that may go: its id, its number of commits, and its time (ns since the epoch)."""

    id: str
    commits: int
    started: int


def old_sets(conn: sqlite3.Connection, days: int) -> list[OldCommitSet]:
    """The commit sets of at least so many days that nothing needs, in an order in which they can be squashed."""
    limit = newest_of_age(conn, days)
    if not limit:
        return []
    kept = {row[0] for row in conn.execute(_NEEDED, {"limit": limit, "mark": MARK, "spec": SPEC})}
    kept.update(_below_failed_heads(conn))
    kept = _with_provenance(kept, _above(conn))
    # A set is made in one step, after all that it depends on.
    rows = conn.execute("SELECT id, COUNT(*), MIN(started) FROM commits GROUP BY id ORDER BY MIN(seq) DESC")
    return [OldCommitSet(*row) for row in rows if row[0] not in kept]


def squash_old(pfs: PfsService, days: int, most: int | None = None) -> int:
    """Squashes the old sets, at most `most`, each in a step of its own; 0 days: none. Returns how many. One that is
    needed again by then stays."""
    if not days:
        return 0
    with pfs.db.read() as conn:
        doomed = old_sets(conn, days)
    return sum(_squashed(pfs, each.id) for each in doomed[:most])


def freed_bytes(conn: sqlite3.Connection, sets: Iterable[str]) -> int:
    """The bytes of content that nothing would refer to without these commit sets."""
    conn.execute("CREATE TEMP TABLE IF NOT EXISTS doomed (seq INTEGER PRIMARY KEY)")
    conn.execute("DELETE FROM doomed")
    conn.executemany("INSERT INTO doomed SELECT seq FROM commits WHERE id = ?", ((each,) for each in sets))
    kept = {
        row[0]
        for row in conn.execute(
            "SELECT layer FROM commit_layers WHERE commit_seq NOT IN (SELECT seq FROM doomed) "
            "UNION SELECT layer FROM fileset_layers"
        )
    }
    layers = {row[0] for row in conn.execute("SELECT id FROM layers")}
    sizes = dict(_chunks(conn, layers - kept))
    for digest, _ in _chunks(conn, kept):
        sizes.pop(digest, None)
    return sum(sizes.values())


def _squashed(pfs: PfsService, commit_set: str) -> bool:
    try:
        return pfs.transact(partial(_squash, commit_set), frees=True)
    except PachError:  # something depends on it since
        return False


def _squash(commit_set: str, txn: Transaction) -> bool:
    head = "SELECT 1 FROM branches b JOIN commits c ON c.seq = b.head WHERE c.id = ?"
    if txn.conn.execute(head, (commit_set,)).fetchone():
        return False
    commit_removal.squash_set(txn, commit_set)
    return True


def _below_failed_heads(conn: sqlite3.Connection) -> Iterator[str]:
    """The sets of the commits whose content is read through failed heads."""
    for (head,) in conn.execute(_LEAVES).fetchall():
        whole = lineage.nearest_whole(conn, head)
        if whole is not None:
            yield conn.execute("SELECT id FROM commits WHERE seq = ?", (whole,)).fetchone()[0]


def _above(conn: sqlite3.Connection) -> Mapping[str, list[str]]:
    above = defaultdict(list)
    for below, upstream in conn.execute(_EDGES):
        above[below].append(upstream)
    return above


def _with_provenance(kept: set[str], above: Mapping[str, list[str]]) -> set[str]:
    pending = list(kept)
    while pending:
        fresh = set(above.get(pending.pop(), ())) - kept
        kept |= fresh
        pending.extend(fresh)
    return kept


def _chunks(conn: sqlite3.Connection, layers: Iterable[int]) -> Iterator[tuple[bytes, int]]:
    for layer in layers:
        rows = conn.execute("SELECT size, chunks FROM entries WHERE layer = ? AND chunks IS NOT NULL", (layer,))
        for size, chunks in rows:
            for place, digest in enumerate(unpacked(size, chunks).chunks):
                yield digest, min(CHUNK_SIZE, size - place * CHUNK_SIZE)
