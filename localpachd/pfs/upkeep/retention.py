"""Old commit sets that nothing needs: chosen by a pure look at a snapshot, and squashed one by one.

Kept, whatever their age, are the commit sets of: heads of branches, and below a failed head the newest commit without
error; commits whose description contains "#keep"; commits that are open, or without children, or whose children are
open; versions of pipelines; and all that a kept commit was made from. So each kept commit keeps its whole provenance,
and squashing never loses the last version of a file.

Ages are days that the server has seen pass, whatever the clocks say: a clock that is set ahead must not make everything
old. The days are counted while the server runs, by the clock that nobody can set; of the time between two runs at most
a day counts. For each day the newest commit is noted.
"""

import json
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from localpachd.database import Database
from localpachd.errors import PachError
from localpachd.ids import CHUNK_SIZE
from localpachd.pfs import commit_removal, commit_rows
from localpachd.pfs.contents import TOTAL, store, stored
from localpachd.pfs.pfs_entities import SPEC
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.provenance_graph import reached
from localpachd.pfs.transaction import Transaction
from localpachd.storage.filesets import FileSet, FileSetRef, chunk_hashes, merge

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

_DAY = 86400.0
_KEY = "days seen"

_HIDDEN = 0.01
"""The ratio of hidden or removed bytes to visible ones above which layers are merged."""

# Commits that share no layer: a layer that another commit reads would stay, and merging would free nothing.
_ALONE = f"""SELECT own.commit_seq FROM commit_layers own WHERE own.part = '{TOTAL}' GROUP BY own.commit_seq
    HAVING COUNT(*) > 1 AND NOT MAX(
        EXISTS (SELECT 1 FROM commit_layers c WHERE c.layer = own.layer AND c.commit_seq <> own.commit_seq)
        OR EXISTS (SELECT 1 FROM fileset_layers f WHERE f.layer = own.layer))"""


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
    kept |= reached(_above(conn), kept)
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
        whole = commit_rows.nearest_whole(conn, head)
        if whole is not None:
            yield whole["id"]


def _above(conn: sqlite3.Connection) -> Mapping[str, list[str]]:
    above = defaultdict(list)
    for below, upstream in conn.execute(_EDGES):
        above[below].append(upstream)
    return above


def _chunks(conn: sqlite3.Connection, layers: Iterable[int]) -> Iterator[tuple[bytes, int]]:
    for layer in layers:
        rows = conn.execute("SELECT size, chunks FROM entries WHERE layer = ? AND chunks IS NOT NULL", (layer,))
        for size, chunks in rows:
            for place, digest in enumerate(chunk_hashes(chunks)):
                yield digest, min(CHUNK_SIZE, size - place * CHUNK_SIZE)


class CommitAges:
    """Counts days. `clock` is the machine's clock, which may be set, `steady` one that only runs; both in seconds."""

    def __init__(
        self, db: Database, clock: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._db = db
        self._clock = clock
        self._steady = steady
        self._last: float | None = None

    def look(self) -> float:
        """Counts the time since the last look, and notes the newest commit of a day that has begun. To be called more
        often than once a day. Returns the days that were seen so far."""
        now = self._steady()
        passed = None if self._last is None else now - self._last
        days = self._db.write(lambda conn: self._note(conn, passed))
        self._last = now
        return days

    def _note(self, conn: sqlite3.Connection, passed: float | None) -> float:
        row = conn.execute("SELECT value FROM facts WHERE key = ?", (_KEY,)).fetchone()
        before = json.loads(row[0]) if row else {"seconds": 0.0, "clock": self._clock()}
        if passed is None:  # the server was not running
            passed = min(max(0.0, self._clock() - before["clock"]), _DAY)
        seconds = before["seconds"] + passed
        text = json.dumps({"seconds": seconds, "clock": self._clock()})
        conn.execute("INSERT OR REPLACE INTO facts (key, value) VALUES (?, ?)", (_KEY, text))
        newest = "SELECT ?, COALESCE(MAX(seq), 0) FROM commits"
        conn.execute(f"INSERT OR IGNORE INTO days (day, newest) {newest}", (int(seconds // _DAY),))
        return seconds / _DAY


def newest_of_age(conn: sqlite3.Connection, days: int) -> int:
    """The sequence number of the newest commit that is at least so many days old; 0 for none."""
    last = conn.execute("SELECT COALESCE(MAX(day), 0) FROM days").fetchone()[0]
    # Whatever a day's note names may have been made at the end of that day.
    found = conn.execute("SELECT MAX(newest) FROM days WHERE day < ?", (last - days,)).fetchone()[0]
    return int(found or 0)


def merge_hidden(db: Database) -> int:
    """Replaces the layers of each finished commit by one if no other commit reads them and much of them is hidden, as
    after its ancestors were squashed. The next sweep deletes the old layers. Returns the number of commits.

    Call it only while nothing reads commits, as at the start of the server: readers may hold layer ids.
    """
    with db.read() as conn:
        alone = [row[0] for row in conn.execute(_ALONE)]
        worthwhile = [seq for seq in alone if _hides_much(conn, stored(conn, seq, TOTAL))]
    for seq in worthwhile:
        db.write(partial(_merge, seq))
    return len(worthwhile)


def _hides_much(conn: sqlite3.Connection, layers: FileSetRef) -> bool:
    held = sum(
        conn.execute("SELECT COALESCE(SUM(size), 0) FROM entries WHERE layer = ?", (layer,)).fetchone()[0]
        for layer in layers
    )
    seen = sum(size for _, _, size, _ in FileSet(conn, layers).rows())
    return bool(held - seen > _HIDDEN * seen)


def _merge(seq: int, conn: sqlite3.Connection) -> None:
    store(conn, seq, TOTAL, merge(conn, stored(conn, seq, TOTAL)))
