"""Warm processes of pipelines: kept from job to job, and ended with the version, a stop, a deletion and the server."""

from __future__ import annotations

import fcntl
from collections.abc import Mapping
from typing import Any

import pytest

from localpachd.errors import InvalidArgument
from localpachd.pps import pipelines
from localpachd.pps.pps_entities import JobState, Pipeline
from localpachd.worker.tasks import LogLine
from speclang.warm_annotations import MEMORY, SECONDS
from tests.localpachd.pps.engine import Engine
from tests.localpachd.worker.plain_batches import batched
from tests.localpachd.worker.test_warm_workers import COUNT

PIPELINE = Pipeline("default", "p")
IN = {"pfs": {"repo": "in", "glob": "/"}}


def request(engine: Engine, annotations: Mapping[str, str], body: str = "", **fields: Any) -> dict[str, Any]:
    """A pipeline whose process counts its datums, and does `body` at each."""
    alive = engine.root / "alive"
    alive.touch()
    task = batched(COUNT + "".join(f"    {line}\n" for line in body.splitlines()))
    transform = {"cmd": list(task.cmd), "stdin": [], "datum_batching": True, "env": {"ALIVE": str(alive)}}
    return engine.request("p", IN, "", transform=transform, metadata={"annotations": dict(annotations)}, **fields)


def seen(engine: Engine, text: str) -> str:
    """Commits a file; how many datums the process that took it has seen."""
    engine.put("in", {"/f": text})
    job = engine.settle("p")
    assert (job.state, job.reason) == (JobState.SUCCESS, "")
    return engine.files("p")["/seen"]


def await_end(engine: Engine) -> None:
    """Waits until no process is alive."""
    with (engine.root / "alive").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)


@pytest.fixture
def warm(engine: Engine) -> Engine:
    """An engine with a pipeline whose process is kept, and has seen two jobs."""
    engine.repo("in")
    engine.submit(request(engine, {SECONDS: "600"}, autoscaling=True))
    assert [seen(engine, text) for text in ("a", "b")] == ["1", "2"]
    assert engine.runner.warm == 1
    return engine


def test_each_line_is_in_the_log_of_its_job(engine: Engine) -> None:
    engine.repo("in")
    engine.submit(request(engine, {SECONDS: "600"}, 'print("job", env["PACH_JOB_ID"], flush=True)'))
    assert [seen(engine, text) for text in ("a", "b", "c")] == ["1", "2", "3"]
    with engine.db.read() as conn:
        rows = conn.execute("SELECT job, message FROM logs WHERE message LIKE 'job %'").fetchall()
    assert len(rows) == 3
    assert all(message == f"job {job}" for job, message in rows)


def test_an_update_ends_the_process(warm: Engine) -> None:
    warm.submit({**request(warm, {SECONDS: "600"}, "pass"), "update": True})
    await_end(warm)
    assert seen(warm, "c") == "1"
    assert seen(warm, "d") == "2"


def test_a_stopped_pipeline_has_no_process(warm: Engine) -> None:
    warm.step(pipelines.stop, PIPELINE)
    await_end(warm)
    warm.step(pipelines.start, PIPELINE)
    assert seen(warm, "c") == "1"


def test_a_deleted_pipeline_has_no_process(warm: Engine) -> None:
    warm.pps.delete_pipeline(PIPELINE)
    await_end(warm)
    assert warm.runner.warm == 0


def test_a_killed_job_ends_its_process(engine: Engine) -> None:
    engine.repo("in")
    body = 'if "hang" in (pfs / "in" / "f").read_text(): print("hanging", flush=True); time.sleep(50)'
    engine.submit(request(engine, {SECONDS: "600"}, body))
    assert seen(engine, "a") == "1"
    engine.put("in", {"/f": "hang"})
    job = engine.jobs("p")[0].job
    engine.until(lambda: engine.pps.jobs.inspect(job).worker_status)
    engine.stop(job)
    await_end(engine)
    assert seen(engine, "b") == "1"


def test_a_datum_that_is_run_again_has_a_process_of_its_own(warm: Engine) -> None:
    job = warm.jobs("p")[0].job
    (datum,) = warm.datums(job).values()
    said = [event for event in warm.pps.rerun_datum(job, datum.id).events() if isinstance(event, LogLine)]
    assert "beginning to run user code" in [line.message for line in said]
    assert warm.runner.warm == 1
    assert seen(warm, "c") == "3"


@pytest.mark.parametrize(
    ("annotations", "text"),
    [
        ({SECONDS: "10m"}, f'metadata.annotations["{SECONDS}"] "10m" is not a whole number of seconds from 0 to 86400'),
        ({SECONDS: "9", MEMORY: "x"}, f'metadata.annotations["{MEMORY}"] "x" is not a valid quantity of memory'),
    ],
)
def test_annotations_that_are_not_valid_are_refused(engine: Engine, annotations: dict[str, str], text: str) -> None:
    engine.repo("in")
    with pytest.raises(InvalidArgument) as refused:
        engine.submit(request(engine, annotations))
    assert str(refused.value).startswith(text)
