"""Logs of user code and of the server about pipelines: found by filters, followed as they grow, and searched over
pipelines and jobs by time, text and origin, as `logs.API` of Pachyderm 2.10 does."""

import base64
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from localpachd.database import Database
from localpachd.errors import NotFound, PachError, prefixed
from localpachd.pfs.changes import ChangeNotifier, Steps
from localpachd.pps import job_rows, log_rows, pipeline_rows, pipelines
from localpachd.pps.datums import Datum
from localpachd.pps.pps_entities import Job, LogLevel, LogMessage, Pipeline, PipelineActivity
from localpachd.pps.server_log import ServerLog, ServerTail
from localpachd.storage.patterns import regular_expression

_DAY = 24 * 3600.0
_SECOND = 1_000_000_000
# A job's lines are read from a little before its creation, as in Pachyderm, where clocks differ.
_SKEW = 10 * _SECOND
_PAGE = 200
"""Lines that a reply reads at once, and holds for as long as its client does not read on."""

_END_OF_TIME = (1 << 63) - 1


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


def read(
    db: Database, changes: ChangeNotifier, own: ServerLog, query: LogQuery, active: Callable[[], bool]
) -> Steps[LogMessage]:
    """The lines that match the query, oldest first; with `follow`, also new ones until `active` is false or the
    pipeline is stopped or deleted. Without a pipeline or job they are those of the server's `own` log.

    Raises PachError with Pachyderm's text for an invalid query, NotFound for an unknown pipeline or job.
    """
    with db.read() as conn:
        pipeline, since = _subject(conn, query)
        life = pipeline_rows.incarnation(conn, pipeline) if pipeline else None
    tail: _Tail | ServerTail
    if pipeline is None:
        tail = own.tail(since)
    else:
        tail = _Tail(db, *_condition(query, pipeline, since), query.data_filters)
    with changes.feed(*((PipelineActivity(pipeline), pipeline) if pipeline else (PipelineActivity(None),))) as feed:
        over = _over(db, pipeline, life)
        yield from deque(tail.lines(), query.tail) if query.tail > 0 else tail.lines()
        while query.follow and active() and not over:
            yield feed
            over = _over(db, pipeline, life)  # before the lines are read, so that none is missed
            yield from tail.lines()


def _over(db: Database, pipeline: Pipeline | None, life: int | None) -> bool:
    """Whether a log gets no more lines: the pipeline that was in this life is stopped or deleted."""
    if pipeline is None:
        return False
    with db.read() as conn:
        return life is None or pipeline_rows.incarnation(conn, pipeline) != life


def newest(conn: sqlite3.Connection, pipeline: Pipeline, most: int) -> list[LogMessage]:
    """The newest lines about a pipeline, at most so many, oldest first."""
    rows = conn.execute(
        f"SELECT {log_rows.COLUMNS} FROM logs WHERE project = ? AND pipeline = ? ORDER BY seq DESC LIMIT ?",
        (pipeline.project, pipeline.name, most),
    ).fetchall()
    return [log_rows.message(row) for row in reversed(rows)]


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
    with prefixed(f"could not get pipeline information for {pipeline}", NotFound):
        pipelines.inspect(conn, pipeline)
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
                    f"SELECT {log_rows.COLUMNS}, seq FROM logs WHERE seq > ? AND {self._where} ORDER BY seq "
                    f"LIMIT {_PAGE}",
                    (self._position, *self._values),
                ).fetchall()
            for *row, self._position in rows:
                line = log_rows.message(row)
                if not self._data_filters or match_data(self._data_filters, line.data):
                    yield line


@dataclass(frozen=True, slots=True)
class LogSearch:
    """The lines to find; an empty field matches all. Times in ns since the epoch, both inclusive; `start` after `end`
    searches backwards. `offset` skips lines of the first nanosecond, `most` limits the number of lines, 0 for no limit;
    `level` is the least of the lines."""

    project: str = ""
    pipeline: str = ""
    job: str = ""
    datum: str = ""
    master: bool | None = None
    user_only: bool = False
    start: int | None = None
    end: int | None = None
    offset: int = 0
    most: int = 0
    pattern: str = ""
    negate: bool = False
    level: LogLevel = LogLevel.DEBUG


def search(conn: sqlite3.Connection, wanted: LogSearch) -> Iterator[LogMessage]:
    """The lines found, in the direction of the search. Raises InvalidArgument for an invalid pattern."""
    pattern = regular_expression(wanted.pattern)
    backwards = wanted.start is not None and wanted.end is not None and wanted.start > wanted.end
    low, high = (wanted.end, wanted.start) if backwards else (wanted.start, wanted.end)
    terms: dict[str, str | int] = {"ts >= ?": low or 0, "ts <= ?": _END_OF_TIME if high is None else high}
    terms["level >= ?"] = wanted.level
    for column in ("project", "pipeline", "job", "datum"):
        if getattr(wanted, column):
            terms[f"{column} = ?"] = getattr(wanted, column)
    if wanted.master is not None:
        terms["master = ?"] = int(wanted.master)
    if wanted.user_only:
        terms["user = ?"] = 1
    order = "DESC" if backwards else "ASC"
    rows = conn.execute(
        f"SELECT {log_rows.COLUMNS} FROM logs WHERE {' AND '.join(terms)} ORDER BY ts {order}, seq {order} "
        "LIMIT -1 OFFSET ?",
        (*terms.values(), wanted.offset),
    )
    found = (log_rows.message(row) for row in rows if (pattern.search(row["message"]) is None) == wanted.negate)
    return islice(found, wanted.most) if wanted.most else found
