"""What user code and the engine say, line by line: kept in the database, found by filters, followed as it grows."""

import base64
import json
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from localpachd.db import Database
from localpachd.errors import NotFound, PachError
from localpachd.pfs.changes import Changes
from localpachd.pps import jobs, pipelines
from localpachd.pps.values import Job, LogMessage, Pipeline

_DAY = 24 * 3600.0
_SECOND = 1_000_000_000
# Lines of a job are asked for from a little before its creation: clocks differ on the real thing.
_SKEW = 10 * _SECOND
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Which lines to show; the filters are conjunctive. `since` in seconds before now (None: a day, or since the job was
    created); `tail` keeps only so many of the last lines there are now, 0 all."""

    pipeline: Pipeline | None = None
    job: Job | None = None
    datum: str = ""
    data_filters: tuple[str, ...] = ()
    master: bool = False
    follow: bool = False
    since: float | None = None
    tail: int = 0


def write(conn: sqlite3.Connection, lines: Iterable[LogMessage]) -> None:
    """Stores lines in order."""
    conn.executemany(
        "INSERT INTO logs (ts, project, pipeline, job, datum, worker, user, master, data, message) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
                json.dumps([[path, digest.hex()] for path, digest in line.data]) if line.data else "",
                line.message,
            )
            for line in lines
        ),
    )


def delete_of(conn: sqlite3.Connection, pipeline: Pipeline) -> None:
    """Forgets the lines of a pipeline that is going away."""
    conn.execute("DELETE FROM logs WHERE project = ? AND pipeline = ?", (pipeline.project, pipeline.name))


def read(db: Database, changes: Changes, query: LogQuery, active: Callable[[], bool]) -> Iterator[LogMessage]:
    """The lines that pass the query's filters, oldest first; with `follow`, also those to come until `active` is false.

    Raises PachError with Pachyderm's texts for a query that makes no sense, NotFound for an unknown pipeline or job.
    """
    seen = changes.count
    with db.read() as conn:
        where, values = _filters(conn, query)
    last = 0
    backlog: Iterable[LogMessage] = _matching(db, query, where, values, 0, advance := _Position())
    if query.tail > 0:
        backlog = deque(backlog, maxlen=query.tail)
    yield from backlog
    last = advance.seq
    while query.follow and active():
        seen = changes.wait_past(seen)
        if active():
            yield from _matching(db, query, where, values, last, advance)
            last = advance.seq


class _Position:
    """How far the lines have been read."""

    seq = 0


def _filters(conn: sqlite3.Connection, query: LogQuery) -> tuple[str, list[str | int]]:
    pipeline, since = _subject(conn, query)
    where, values = ["master = ?", "ts >= ?"], [int(query.master), since]
    checked: list[str | int] = list(values)
    if pipeline is not None:
        where += ["project = ?", "pipeline = ?"]
        checked += [pipeline.project, pipeline.name]
    else:
        # Neither job nor pipeline: what the server itself has to say.
        where = ["pipeline = ''", "ts >= ?"]
        checked = [since]
    if query.job is not None:
        where.append("job = ?")
        checked.append(query.job.id)
    if query.datum:
        where.append("datum = ?")
        checked.append(query.datum)
    return " AND ".join(where), checked


def _subject(conn: sqlite3.Connection, query: LogQuery) -> tuple[Pipeline | None, int]:
    """Whose lines are asked for, and since when (ns)."""
    pipeline, job = query.pipeline, query.job
    since = time.time_ns() - int((query.since or _DAY) * _SECOND)
    if pipeline is None and job is None:
        if query.data_filters or query.datum:
            raise PachError("must specify the Job or Pipeline that the datum is from to get logs for it")
        return None, since
    if job is not None:
        if not job.pipeline.name:
            raise PachError("pipeline must be specified for the given job")
        if pipeline is not None and pipeline != job.pipeline:
            raise PachError("job is from the wrong pipeline")
        try:
            created = jobs.inspect(conn, job).created
        except NotFound as error:
            raise NotFound(f'could not get job information for "{job.id}": {error}') from error
        return job.pipeline, since if query.since else created - _SKEW
    assert pipeline is not None
    try:
        pipelines.inspect(conn, pipeline)
    except NotFound as error:
        raise NotFound(f"could not get pipeline information for {pipeline}: {error}") from error
    return pipeline, since


def _matching(
    db: Database, query: LogQuery, where: str, values: list[str | int], after: int, position: _Position
) -> Iterator[LogMessage]:
    """Lines past `after`, a page at a time, so that a slow reader holds no snapshot open."""
    position.seq = after
    while True:
        with db.read() as conn:
            rows = conn.execute(
                f"SELECT * FROM logs WHERE seq > ? AND {where} ORDER BY seq LIMIT {_PAGE}", (position.seq, *values)
            ).fetchall()
        for row in rows:
            position.seq = row["seq"]
            message = _message(row)
            if _has_data(query.data_filters, message.data):
                yield message
        if len(rows) < _PAGE:
            return


def _message(row: sqlite3.Row) -> LogMessage:
    return LogMessage(
        ts=row["ts"],
        pipeline=Pipeline(row["project"], row["pipeline"]) if row["pipeline"] else None,
        job=row["job"],
        datum=row["datum"],
        worker=row["worker"],
        user=bool(row["user"]),
        master=bool(row["master"]),
        message=row["message"],
        data=tuple((path, bytes.fromhex(digest)) for path, digest in json.loads(row["data"] or "[]")),
    )


def _has_data(filters: Iterable[str], data: Iterable[tuple[str, bytes]]) -> bool:
    names: set[str] = set()
    for path, digest in data:
        names |= {path, digest.hex(), base64.b64encode(digest).decode()}
    return all(each in names for each in filters)
