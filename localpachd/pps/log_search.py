"""Searching the log over pipelines and jobs by time, text and origin, as `logs.API` of Pachyderm 2.10 does."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from localpachd.pps import log_rows
from localpachd.pps.pps_entities import LogLevel, LogMessage
from localpachd.storage.patterns import regular_expression

_END_OF_TIME = (1 << 63) - 1


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
