"""Cron inputs and triggers of inputs, on a clock that the tests move."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from localpachd.pfs import branches
from localpachd.pfs.pfs_entities import Branch, Repo
from localpachd.pps import pipelines
from localpachd.pps.pps_entities import JobState, Pipeline, PipelineState
from tests.localpachd.pps.engine import Engine

LIST = 'for f in "$PFS"/*/2*; do touch "$PFS/out/$(basename "$f")"; done'
HOUR = 3600
START = datetime(2030, 1, 1, tzinfo=UTC)


def files_of(repo: str, **fields: Any) -> dict[str, Any]:
    return {"pfs": {"repo": repo, "glob": "/*", **fields}}


def cron(spec: str = "@every 1h", **fields: object) -> dict[str, object]:
    return {"cron": {"name": "tick", "spec": spec, "start": f"{START:%Y-%m-%dT%H:%M:%SZ}", **fields}}


def at(engine: Engine, hours: float) -> None:
    """Sets the clock to a number of hours after the start of the schedules."""
    engine.clock.time = int(START.timestamp() + hours * HOUR) * 10**9
    engine.pfs.changes.wake()


def ticks(engine: Engine, name: str = "p") -> list[str]:
    return sorted(engine.files(f"{name}_tick"))


def until(engine: Engine, count: int) -> list[str]:
    """The ticks, once there are at least `count` and the newest job is over."""
    engine.until(lambda: len(ticks(engine)) >= count)
    engine.settle("p")
    return ticks(engine)


def hour(number: int) -> str:
    return f"/2030-01-01T{number:02}:00:00Z"


def test_each_tick_is_a_file_a_datum_and_a_job(engine: Engine) -> None:
    at(engine, 0)
    engine.create("p", cron(), LIST)
    engine.settle("p")
    assert ticks(engine) == []
    at(engine, 1)
    assert until(engine, 1) == [hour(1)]
    at(engine, 2)
    assert until(engine, 2) == [hour(1), hour(2)]
    newest, before, first = engine.jobs("p")
    assert (newest.state, newest.counters.processed, newest.counters.skipped) == (JobState.SUCCESS, 1, 1)
    assert (before.counters.total, first.counters.total) == (1, 0)


def test_missed_ticks_come_one_by_one_and_after_a_restart(engine: Engine) -> None:
    at(engine, 0)
    engine.create("p", cron(), LIST)
    engine.until(lambda: engine.pps.inspect_pipeline(Pipeline("default", "p")).state is PipelineState.RUNNING)
    at(engine, 2.5)
    assert until(engine, 2) == [hour(1), hour(2)]
    engine.clock.time += 3 * HOUR * 10**9
    engine.restart()
    assert until(engine, 5) == [hour(number) for number in range(1, 6)]
    assert len(engine.jobs("p")) == 6


def test_overwrite_leaves_the_newest_tick_alone(engine: Engine) -> None:
    at(engine, 0)
    engine.create("p", cron(overwrite=True), LIST)
    at(engine, 3)
    engine.until(lambda: ticks(engine) == [hour(3)])
    assert engine.settle("p").counters.total == 1


def test_ticks_go_on_after_the_clock_was_ahead(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    at(engine, 0)
    engine.create("p", cron(overwrite=True), LIST)
    at(engine, 5)
    engine.until(lambda: ticks(engine) == [hour(5)])
    at(engine, 1.5)  # set back by a time server
    engine.until(lambda: any("p_tick has ticks of a clock that was ahead" in each for each in caplog.messages))
    assert ticks(engine) == [hour(5)]
    at(engine, 2.75)
    engine.until(lambda: ticks(engine) != [hour(5)])
    (tick,) = ticks(engine)
    assert hour(2) <= tick < hour(3)


def test_a_timed_trigger_fires_again_after_the_clock_was_ahead(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    engine.repo("in")
    trigger = {"trigger": {"branch": "master", "cron_spec": "@every 1h"}}
    engine.create("p", files_of("in", **trigger), 'cp "$PFS"/in/* "$PFS/out/"')
    engine.settle("p")
    engine.put("in", {"/a": "1"})
    engine.sleep(100 * HOUR)
    engine.until(lambda: len(engine.jobs("p")) == 2)
    assert engine.settle("p").counters.total == 1
    engine.put("in", {"/b": "2"})
    engine.sleep(-98 * HOUR)
    engine.until(lambda: "the clock was ahead: timed triggers that fired then start anew" in caplog.messages)
    assert len(engine.jobs("p")) == 2
    engine.sleep(1.5 * HOUR)
    engine.until(lambda: len(engine.jobs("p")) == 3)
    assert engine.settle("p").counters.total == 2


def test_nothing_ticks_while_the_pipeline_is_stopped(engine: Engine) -> None:
    at(engine, 0)
    engine.create("p", cron(), LIST)
    engine.create("other", cron(), LIST)
    engine.step(pipelines.stop, Pipeline("default", "p"))
    at(engine, 1)
    engine.until(lambda: ticks(engine, "other"))
    assert ticks(engine) == []
    engine.step(pipelines.start, Pipeline("default", "p"))
    assert until(engine, 1) == [hour(1)]


def test_a_pipeline_that_is_stopped_while_the_clock_is_read_does_not_tick(engine: Engine) -> None:
    at(engine, 0)
    engine.create("p", cron(), LIST)
    engine.until(lambda: engine.pps.inspect_pipeline(Pipeline("default", "p")).state is PipelineState.RUNNING)
    done = threading.Event()

    def stop_and_wait() -> None:
        engine.step(pipelines.stop, Pipeline("default", "p"))
        engine.clock.time = int(START.timestamp() + HOUR) * 10**9
        done.set()

    # The clock is read after the cron inputs.
    engine.clock.asked = stop_and_wait
    engine.pfs.changes.notify()
    assert done.wait(30)
    engine.create("other", cron(), LIST)
    engine.until(lambda: ticks(engine, "other"))
    assert ticks(engine) == []
    engine.step(pipelines.start, Pipeline("default", "p"))
    assert until(engine, 1) == [hour(1)]


def test_a_timed_trigger_that_is_deleted_while_the_clock_is_read_moves_nothing(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    at(engine, 0)
    engine.repo("in")
    master, daily = (Branch(Repo("default", "in"), name) for name in ("master", "daily"))
    trigger = {"branch": "master", "cron_spec": "@every 24h"}
    engine.put("in", {"/a": "1"})
    engine.pfs.transact(lambda txn: branches.create(txn, daily, trigger=trigger))
    done = threading.Event()

    def delete_and_wait() -> None:
        engine.pfs.transact(lambda txn: branches.delete(txn, daily))
        engine.clock.time += 48 * HOUR * 10**9
        done.set()

    engine.clock.asked = delete_and_wait
    engine.pfs.changes.notify()
    assert done.wait(30)
    engine.create("p", cron("@every 1h"), LIST)
    engine.until(lambda: ticks(engine))
    with engine.db.read() as conn:
        assert branches.of_repo(conn, master.repo) == [master]
    assert caplog.records == []


def test_run_cron_ticks_every_cron_input(engine: Engine) -> None:
    at(engine, 0.5)
    engine.create("p", {"cross": [cron("@never", name="one"), cron("@never", name="two")]}, "true")
    engine.pps.cron.run_now(Pipeline("default", "p"))
    assert engine.files("p_one").keys() == engine.files("p_two").keys() == {"/2030-01-01T00:30:00Z"}
    engine.until(lambda: engine.settle("p").counters.total == 1)
    assert engine.settle("p").counters.processed == 1


def test_a_timed_trigger_follows_the_clock(engine: Engine) -> None:
    engine.repo("in")
    trigger = {"trigger": {"branch": "master", "cron_spec": "@every 24h"}}
    engine.create("p", files_of("in", **trigger), 'cp "$PFS"/in/* "$PFS/out/"')
    engine.settle("p")
    engine.put("in", {"/a": "1"})
    assert len(engine.jobs("p")) == 1
    engine.sleep(25 * HOUR)
    engine.until(lambda: len(engine.jobs("p")) == 2)
    assert engine.settle("p").counters.processed == 1
