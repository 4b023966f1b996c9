"""The statements that read a log: they find its lines in order, however long it is."""

import gc
import sqlite3
from collections.abc import Iterator

import pytest

from localpachd.database import Database
from localpachd.pfs.changes import ChangeNotifier
from localpachd.pps import log_queries, log_rows
from localpachd.pps.log_queries import LogQuery
from localpachd.pps.pps_entities import Job, LogMessage
from localpachd.pps.server_log import ServerLog
from tests.localpachd.pps.engine import Engine, blocking, pfs_input


@pytest.fixture
def job(engine: Engine) -> Job:
    """A job with 2,500 lines."""
    engine.repo("texts")
    engine.put("texts", {"/a": "one"})
    engine.create("p", pfs_input("texts"), "true")
    found = engine.settle("p").job
    now = engine.clock()
    lines = [LogMessage(now, found.pipeline, found.id, "", "", True, False, str(number)) for number in range(2500)]
    engine.pfs.transact(lambda txn: log_rows.add(txn, lines))
    return found


@pytest.fixture
def reader(engine: Engine) -> Iterator[Database]:
    """The engine's database, read by nobody else."""
    db = Database(engine.root / "state.sqlite")
    yield db
    db.close()


@pytest.mark.parametrize("of_job", [False, True])
def test_a_long_log_is_read_page_by_page_without_sorting(job: Job, reader: Database, of_job: bool) -> None:
    seen: list[str] = []
    with reader.read() as conn:
        conn.set_trace_callback(seen.append)
    changes = ChangeNotifier()
    query = LogQuery(job=job) if of_job else LogQuery(job.pipeline)
    found = [
        line.message
        for line in blocking(log_queries.read(reader, changes, ServerLog(changes), query, lambda: True))
        if line.user
    ]
    assert found == [str(number) for number in range(2500)]
    pages = [each for each in seen if "FROM logs" in each]
    assert len(pages) == 13
    with reader.read() as conn:
        conn.set_trace_callback(None)
        plans = [row["detail"] for page in pages for row in conn.execute(f"EXPLAIN QUERY PLAN {page}")]
    assert all("USING INDEX" in plan for plan in plans), plans


def test_a_log_that_is_not_read_on_holds_a_page(job: Job, reader: Database) -> None:
    changes = ChangeNotifier()
    lines = blocking(log_queries.read(reader, changes, ServerLog(changes), LogQuery(job.pipeline), lambda: True))
    before = _rows()
    next(lines)
    assert _rows() - before <= 200
    assert sum(1 for _ in lines) >= 2499


def _rows() -> int:
    gc.collect()
    return sum(type(each) is sqlite3.Row for each in gc.get_objects())
