"""Logs of user code and of the server about pipelines: stored line by line, found by filters, followed as they grow."""

import base64
import json
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from localpachd.db import Database
from localpachd.errors import NotFound, PachError
from localpachd.pfs.changes import Changes
from localpachd.pfs.transaction import Transaction
from localpachd.pps import job_rows, pipelines
from localpachd.pps.datums import Datum
from localpachd.pps.entities import Activity, Job, LogMessage, Pipeline
from localpachd.pps.server_log import ServerLog, ServerTail

_DAY = 24 * 3600.0
_SECOND = 1_000_000_000
# A job's lines are read from a little before its creation, as in Pachyderm, where clocks differ.
_SKEW = 10 * _SECOND
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class LogQuery:
    """The lines to show; all filters must match. `since` in seconds before now (None: one day, or since the job was
    created); `tail` limits the lines that are there now to the last ones, 0 for no limit."""

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


def add(txn: Transaction, lines: Sequence[LogMessage]) -> None:
    """Stores lines, without those of pipelines that were deleted in the meantime: they do not belong in the log of a
    later pipeline of the same name."""
    alive = {each for each in {line.pipeline for line in lines} if each is None or pipelines.exists(txn.conn, each)}
    write(txn.conn, [line for line in lines if line.pipeline in alive])
    txn.changed.update(map(Activity, alive))


def say(txn: Transaction, job: Job, message_: str) -> None:
    """Adds a line of the server to the log of a job."""
    add(txn, [LogMessage(time.time_ns(), job.pipeline, job.id, "", "", False, False, message_)])


def read(
    db: Database, changes: Changes, own: ServerLog, query: LogQuery, active: Callable[[], bool]
) -> Iterator[LogMessage]:
    """The lines that match the query, oldest first; with `follow`, also new ones until `active` is false. Without a
    pipeline or job they are those of the server's `own` log.

    Raises PachError with Pachyderm's text for an invalid query, NotFound for an unknown pipeline or job.
    """
    with db.read() as conn:
        pipeline, since = _subject(conn, query)
    tail: _Tail | ServerTail
    if pipeline is None:
        tail = own.tail(since)
    else:
        tail = _Tail(db, *_condition(query, pipeline, since), query.data_filters)
    with changes.feed(Activity(pipeline)) as feed:
        yield from deque(tail.lines(), query.tail) if query.tail > 0 else tail.lines()
        while query.follow and active():
            feed.wait()
            yield from tail.lines()


def inputs_of(datum: Datum) -> tuple[tuple[str, bytes], ...]:
    """Path and hash of each input of a datum, by which its log lines are found."""
    return tuple((each.path, each.hash) for each in datum.inputs)


def match_inputs(filters: Iterable[str], datum: Datum) -> bool:
    """Whether `match_data` holds for a datum's inputs."""
    return match_data(filters, inputs_of(datum))


def match_data(filters: Iterable[str], data: Iterable[tuple[str, bytes]]) -> bool:
    """Whether each filter is the path or the hash, in hex or base64, of one of these (path, hash) pairs."""
    names: set[str] = set()
    for path, digest in data:
        names |= {path, digest.hex(), base64.b64encode(digest).decode()}
    return all(each in names for each in filters)


def _condition(query: LogQuery, pipeline: Pipeline, since: int) -> tuple[str, list[str | int]]:
    terms: dict[str, str | int] = {
        "master = ?": int(query.master),
        "ts >= ?": since,
        "project = ?": pipeline.project,
        "pipeline = ?": pipeline.name,
    }
    if query.job is not None:
        terms["job = ?"] = query.job.id
    if query.datum:
        terms["datum = ?"] = query.datum
    return " AND ".join(terms), list(terms.values())


def _subject(conn: sqlite3.Connection, query: LogQuery) -> tuple[Pipeline | None, int]:
    """The pipeline of a query, None for the server, and the time (ns) from which lines are shown."""
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
            created = job_rows.inspect(conn, job).created
        except NotFound as error:
            raise NotFound(f'could not get job information for "{job.id}": {error}') from error
        return job.pipeline, since if query.since else created - _SKEW
    assert pipeline is not None
    try:
        pipelines.inspect(conn, pipeline)
    except NotFound as error:
        raise NotFound(f"could not get pipeline information for {pipeline}: {error}") from error
    return pipeline, since


class _Tail:
    """A reader of a log that remembers its position."""

    def __init__(self, db: Database, where: str, values: list[str | int], data_filters: Sequence[str]) -> None:
        self._db = db
        self._where = where
        self._values = values
        self._data_filters = data_filters
        self._position = 0

    def lines(self) -> Iterator[LogMessage]:
        """The lines not read yet. Reads them in pages, so that a slow caller holds no snapshot open."""
        rows: list[sqlite3.Row] | None = None
        while rows is None or len(rows) == _PAGE:
            with self._db.read() as conn:
                rows = conn.execute(
                    f"SELECT * FROM logs WHERE seq > ? AND {self._where} ORDER BY seq LIMIT {_PAGE}",
                    (self._position, *self._values),
                ).fetchall()
            for row in rows:
                self._position = row["seq"]
                line = message(row)
                if match_data(self._data_filters, line.data):
                    yield line


def message(row: sqlite3.Row) -> LogMessage:
    """A row of `logs` as a value."""
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
