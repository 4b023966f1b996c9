"""The stored lines of logs: written in order, read back as values, and deleted when they are old. Knows no queries."""

import json
import sqlite3
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from localpachd.database import Database
from localpachd.pfs.transaction import Transaction
from localpachd.pps import pipeline_rows
from localpachd.pps.pps_entities import Job, LogLevel, LogMessage, Pipeline, PipelineActivity

COLUMNS = "ts, project, pipeline, job, datum, worker, user, master, level, data, message"
"""The columns of `logs` that `message` takes, in its order."""

_DAY = 24 * 3600 * 10**9
_AT_ONCE = 10_000


def write(conn: sqlite3.Connection, lines: Iterable[LogMessage]) -> None:
    """Stores lines in order."""
    conn.executemany(
        f"INSERT INTO logs ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (
                line.ts,
                line.pipeline.project if line.pipeline else "",
                line.pipeline.name if line.pipeline else "",
                line.job,
                line.datum,
                line.worker,
                line.user,
                line.master,
                line.level,
                json.dumps([[path, digest.hex()] for path, digest in line.data]) if line.data else "",
                line.message,
            )
            for line in lines
        ),
    )


def add(txn: Transaction, lines: Sequence[LogMessage]) -> None:
    """Stores lines, without those of pipelines that were deleted in the meantime: they do not belong in the log of a
    later pipeline of the same name."""
    alive = {each for each in {line.pipeline for line in lines} if each is None or pipeline_rows.exists(txn.conn, each)}
    write(txn.conn, [line for line in lines if line.pipeline in alive])
    txn.changed.update(map(PipelineActivity, alive))


def add_server_line(txn: Transaction, subject: Job | Pipeline, message_: str, level: LogLevel = LogLevel.INFO) -> None:
    """Adds a line of the server about a job or a pipeline; clients find it among those of its master."""
    pipeline, job = (subject.pipeline, subject.id) if isinstance(subject, Job) else (subject, "")
    add(txn, [LogMessage(time.time_ns(), pipeline, job, "", "", False, True, message_, level=level)])


def message(row: Sequence[Any]) -> LogMessage:
    """A row of the COLUMNS as a value."""
    ts, project, pipeline, job, datum, worker, user, master, level, data, text = row
    return LogMessage(
        ts,
        _pipeline(project, pipeline) if pipeline else None,
        job,
        datum,
        worker,
        bool(user),
        bool(master),
        text,
        _data(data) if data else (),
        LogLevel(level),
    )


# Many lines one after another are of one pipeline and one datum.
_pipeline = lru_cache(maxsize=100)(Pipeline)


@lru_cache(maxsize=100)
def _data(text: str) -> tuple[tuple[str, bytes], ...]:
    return tuple((path, bytes.fromhex(digest)) for path, digest in json.loads(text))


def forget(db: Database, days: int, most: int) -> int:
    """Deletes lines older than `days` days, and the oldest lines beyond `most`; 0 means no limit. Returns the number of
    lines deleted. Deletes in small steps, so that no writer waits long."""
    with db.read() as conn:
        last = _last_to_delete(conn, days, most)
    forgotten = 0
    while gone := db.write(lambda conn: _delete_up_to(conn, last)):
        forgotten += gone
    return forgotten


def _last_to_delete(conn: sqlite3.Connection, days: int, most: int) -> int:
    """The newest line to delete; 0 for none."""
    last = 0
    if most:
        row = conn.execute("SELECT seq FROM logs ORDER BY seq DESC LIMIT 1 OFFSET ?", (most,)).fetchone()
        last = row[0] if row else 0
    if days:
        # Lines are nearly in the order of their time.
        young = "SELECT seq FROM logs WHERE ts >= ? ORDER BY seq LIMIT 1"
        row = conn.execute(young, (time.time_ns() - days * _DAY,)).fetchone()
        newest = conn.execute("SELECT MAX(seq) FROM logs").fetchone()[0] or 0
        last = max(last, row[0] - 1 if row else newest)
    return last


def _delete_up_to(conn: sqlite3.Connection, last: int) -> int:
    oldest = "SELECT seq FROM logs WHERE seq <= ? ORDER BY seq LIMIT ?"
    return conn.execute(f"DELETE FROM logs WHERE seq IN ({oldest})", (last, _AT_ONCE)).rowcount
