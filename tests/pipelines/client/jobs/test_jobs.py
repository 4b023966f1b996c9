"""Jobs with their busy workers."""

import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipelines.client.jobs.jobs import Job, ProjectJobs
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.cluster import pipeline_status
from pipelines.commands.kit import display
from tests.conditions import until
from tests.pipelines.stand_ins import deploy_specs, shell_spec, wait_for


def running(connection: Connection, directory: Path) -> str:
    """A commit whose job is busy with its datum until the file `gate` is there."""
    deploy_specs(connection, shell_spec("slow", "in", wait_for(directory / "gate")))
    return Repository(connection, "in").write([PutFile("/a", b"")])


def test_the_datum_of_a_busy_worker_is_seen_until_the_job_ends(connection: Connection, tmp_path: Path) -> None:
    commit = running(connection, tmp_path)
    seen: list[Job] = []

    def look(jobs: object, infos: object) -> None:
        assert isinstance(jobs, list)
        seen.extend(jobs)
        if any(each.paths for each in seen[-1].busy):
            (tmp_path / "gate").touch()

    (ended,) = ProjectJobs(connection).watch([commit], look)
    (busy,) = next(job.busy for job in reversed(seen) if job.busy)
    assert busy.paths == ("/a",)
    assert 0 <= busy.seconds < 120
    assert (ended.state, ended.busy) == ("success", ())
    assert ProjectJobs(connection).with_workers(ended) == ended


def test_long_jobs_are_looked_at_less_often(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if sum(pauses) > 100:
            (tmp_path / "gate").touch()

    clock = SimpleNamespace(monotonic=lambda: sum(pauses), sleep=sleep, time_ns=time.time_ns)
    monkeypatch.setattr("pipelines.client.jobs.jobs.time", clock)
    ProjectJobs(connection).watch([running(connection, tmp_path)], lambda jobs, infos: None)
    assert pauses[0] == 0.25
    assert all(before <= after <= 1 for before, after in pairwise(pauses))
    assert 100 < len([each for each in pauses if each < 1]) < 150


def test_the_status_shows_it_and_explains_the_counts_of_a_cluster(
    connection: Connection, like_a_cluster: Connection, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit = running(connection, tmp_path)

    def at_work() -> bool:
        job = pipeline_status.read(connection, ["slow"]).pipelines[0].job
        return job is not None and any(each.paths for each in job.busy)

    until(at_work)
    for server, explains in ((connection, False), (like_a_cluster, True)):
        display.show_status(pipeline_status.read(server, ["slow"]))
        said = capsys.readouterr().out
        assert "slow is at work: /a for " in said
        assert ("a cluster counts datums when their datum set ends" in said) == explains
    (tmp_path / "gate").touch()
    ProjectJobs(connection).watch([commit], lambda jobs, infos: None)
