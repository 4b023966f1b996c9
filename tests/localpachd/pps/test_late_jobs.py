"""Jobs whose commits take time to finish, with a finisher that the test starts when it has seen what is before."""

import queue
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from localpachd.pace import Pace
from localpachd.pfs import commits
from localpachd.pfs.pfs_entities import Branch, Commit, Repo
from localpachd.pfs.pfs_service import PfsService
from localpachd.pps.pps_entities import DatumCounters, JobInfo, JobState
from localpachd.pps.scheduling.base_run import BaseRun
from localpachd.pps.scheduling.job_run import JobRun
from localpachd.worker.gpu_pool import GpuPool
from localpachd.worker.tasks import WorkerPod
from tests.localpachd.pps.engine import Engine, pfs_input


@pytest.fixture
def late(tmp_path: Path, gpus: GpuPool) -> Iterator[Engine]:
    running = Engine(tmp_path, gpus, Pace(0.01))
    yield running
    running.close()


def newest(engine: Engine, name: str, *states: JobState) -> JobInfo:
    """The newest job of a pipeline, once it is in one of the states."""

    def look() -> JobInfo | None:
        (job, *_) = engine.jobs(name)
        return job if job.state in states else None

    found: JobInfo = engine.until(look)
    return found


def start(engine: Engine, script: str) -> None:
    """A pipeline with a finished input, whose job's output is not finished yet."""
    engine.repo("in")
    engine.finisher.start()
    engine.put("in", {"/a": "a", "/b": "b"})
    engine.until(lambda: engine.commit("in").finished)
    engine.finisher.stop()
    engine.create("out", pfs_input("in"), script)


def test_a_job_ends_when_its_output_is_finished(late: Engine) -> None:
    start(late, 'cp "$PFS"/in/* "$PFS/out/"')
    job = newest(late, "out", JobState.FINISHING)
    output, meta = late.commit("out"), late.commit("out", kind="meta")
    assert output.finishing is not None
    assert (output.finished, output.size, meta.finished) == (None, None, None)
    assert job.finished is None
    late.restart()  # the job is not run again
    late.finisher = type(late.finisher)(late.pfs)
    late.finisher.start()
    job = newest(late, "out", JobState.SUCCESS)
    assert (job.restart, job.counters.processed) == (0, 2)
    assert late.commit("out").size == 2
    late.until(lambda: late.commit("out", kind="meta").finished)
    assert late.files("out") == {"/a": "a", "/b": "b"}


def test_a_fault_in_the_output_is_found_late_and_ends_the_job(late: Engine) -> None:
    start(late, 'test -f "$PFS/in/a" && echo file > "$PFS/out/x" || { mkdir "$PFS/out/x"; echo y > "$PFS/out/x/y"; }')
    newest(late, "out", JobState.FINISHING)
    assert late.commit("out").error == ""
    late.finisher = type(late.finisher)(late.pfs)
    late.finisher.start()
    job = newest(late, "out", JobState.FAILURE)
    assert job.reason == late.commit("out").error != ""
    assert late.commit("out", kind="meta").error == job.reason
    late.put("in", {"/b": None})  # its base is no longer the faulty commit
    assert late.settle("out").state is JobState.SUCCESS
    assert late.files("out") == {"/x": "file\n"}


def test_a_failed_job_is_over_before_its_commits(late: Engine) -> None:
    start(late, "exit 3")
    job = newest(late, "out", JobState.FAILURE)
    output = late.commit("out")
    assert output.finished is None
    assert output.finishing is not None
    assert output.error == job.reason


def test_a_job_that_waits_for_a_commit_can_be_cancelled(late: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    start(late, 'cp "$PFS"/in/* "$PFS/out/"')
    newest(late, "out", JobState.FINISHING)
    late.put("in", {"/c": "c"})
    waits = threading.Event()
    is_finished = PfsService.finished

    def watched(pfs: PfsService, commit: Commit) -> bool | None:
        waits.set()
        return is_finished(pfs, commit)

    monkeypatch.setattr(PfsService, "finished", watched)
    over: queue.Queue[BaseRun] = queue.Queue()
    run = JobRun(late.pfs, late.runner, late.jobs("out")[0], WorkerPod(), over.put)
    run.start()
    assert waits.wait(60)
    run.cancel()
    try:
        assert over.get(timeout=60) is run
    finally:
        late.pfs.changes.wake()


def test_the_next_job_waits_for_its_base(late: Engine) -> None:
    start(late, 'cp "$PFS"/in/* "$PFS/out/"')
    newest(late, "out", JobState.FINISHING)
    late.put("in", {"/c": "c"})
    late.finisher = type(late.finisher)(late.pfs)
    late.finisher.start()
    job = late.settle("out")
    assert (job.state, job.counters.processed, job.counters.skipped) == (JobState.SUCCESS, 1, 2)
    assert late.files("out") == {"/a": "a", "/b": "b", "/c": "c"}


def test_skipped_datums_are_counted_when_all_new_ones_have_succeeded(late: Engine) -> None:
    late.finisher.start()
    late.repo("in")
    late.put("in", {"/a": "a", "/b": "b"})
    late.create("out", pfs_input("in"), '! grep -q bad "$PFS"/in/*', datum_tries=1)
    assert late.settle("out").state is JobState.SUCCESS
    late.put("in", {"/new": "bad"})
    job = late.settle("out")
    assert (job.state, job.counters) == (JobState.FAILURE, DatumCounters(failed=1, total=3))
    late.put("in", {"/new": None, "/b": "bad"})  # a changed datum comes after the new ones
    job = late.settle("out")
    assert (job.state, job.counters) == (JobState.FAILURE, DatumCounters(failed=1, skipped=1, total=2))


def test_results_are_counted_when_their_set_ends(late: Engine, tmp_path: Path) -> None:
    late.finisher.start()
    late.repo("in")
    late.put("in", {f"/{name}": name for name in "abcd"})
    gate = tmp_path / "gate"
    script = (
        f'test ! -e "$PFS/in/b" || {{ echo waiting; until test -e {gate}; do sleep 0.1; done; }}; touch "$PFS/out/$$"'
    )
    late.create("out", pfs_input("in"), script, datum_set_spec={"number": 4})
    late.until(lambda: "waiting" in late.lines("out"))
    job = newest(late, "out", JobState.RUNNING)
    assert (job.counters.processed, job.counters.total) == (0, 4)
    assert late.datums(job.job) == {}
    gate.touch()
    assert late.settle("out").counters.processed == 4


def test_a_job_does_not_read_the_commits_of_its_specification(late: Engine, tmp_path: Path) -> None:
    """They are in its provenance, and one of them may stand on a commit that is not finished."""
    start(late, f"test -e {tmp_path}/go || sleep 60")
    first = newest(late, "out", JobState.RUNNING)
    assert late.commit("out", kind="spec").finished is None
    opened = late.pfs.transact(lambda txn: commits.start(txn, Branch(Repo("default", "out", "spec"), "master")))
    (tmp_path / "go").touch()
    late.stop(first.job)
    job = newest(late, "out", JobState.FINISHING)
    assert (job.job.id, job.restart) == (opened.commit.id, 0)
