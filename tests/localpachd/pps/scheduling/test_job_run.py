"""Events during a job apart from its datums: errors of the machine, force, missing GPUs."""

import os
import queue
from pathlib import Path
from sqlite3 import Connection

import pytest

from localpachd.errors import PachError
from localpachd.pfs import branches, commit_removal, commits, contents
from localpachd.pfs.pfs_entities import Branch, Repo
from localpachd.pfs.transaction import Transaction
from localpachd.pps import jobs, log_rows
from localpachd.pps.log_queries import LogQuery
from localpachd.pps.pps_entities import DatumCounters, JobInfo, JobState, Pipeline, PipelineState
from localpachd.pps.scheduling.base_run import BaseRun
from localpachd.pps.scheduling.job_run import JobRun
from localpachd.storage.chunk_store import ChunkStore
from localpachd.worker.gpu_pool import GpuPool
from localpachd.worker.tasks import DatumStats, WorkerPod
from tests.localpachd.pps.engine import Engine, pfs_input

ONE = {"pfs": {"repo": "texts", "name": "in", "glob": "/*"}}
GPU = {"gpu": {"type": "nvidia.com/gpu", "number": "1"}}


@pytest.fixture
def texts(engine: Engine) -> Engine:
    engine.repo("texts")
    engine.put("texts", {"/a": "one", "/b": "two"})
    return engine


def test_results_survive_a_crash(texts: Engine) -> None:
    texts.create("shout", ONE, 'for f in "$PFS"/in/*; do tr a-z A-Z < "$f" > "$PFS/out/${f##*/}"; done')
    assert texts.settle("shout").state is JobState.SUCCESS
    with texts.db.read() as conn:
        found = list(contents.fileset(conn, texts.commit("shout")).walk())
    # Another store on the same directory sees only durable chunks, not those that the first one has in memory.
    after_the_crash = ChunkStore(texts.root / "chunks")
    assert {each.path: b"".join(after_the_crash.read(each.content)) for each in found} == {"/a": b"ONE", "/b": b"TWO"}
    after_the_crash.close()


def test_a_failure_before_a_restart_leaves_the_output_of_changed_datums(texts: Engine, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    script = f'test ! -e "$PFS/in/bad"\ntest ! -e "$PFS/in/z" || cat {tmp_path}/go\ncp "$PFS"/in/* "$PFS/out/"'
    texts.create("copy", ONE, script, datum_tries="1", datum_set_spec={"number": "1"})
    texts.settle("copy")
    texts.put("texts", {"/b": "changed", "/bad": "x", "/z": "last"})
    texts.until(lambda: texts.jobs("copy")[0].counters.failed == 1)
    texts.restart()
    (tmp_path / "go").write_text("")
    job = texts.settle("copy")
    assert (job.state, job.counters.failed) == (JobState.FAILURE, 1)
    assert texts.files("copy", job.job.id) == {"/a": "one", "/b": "two", "/z": "last"}


def test_after_an_error_of_the_machine_a_job_is_tried_again_and_counts_it(texts: Engine) -> None:
    def refuse(conn: Connection) -> None:
        conn.execute("CREATE TRIGGER full BEFORE INSERT ON entries BEGIN SELECT RAISE(ABORT, 'the disk is full'); END")

    texts.db.write(refuse)
    texts.create("copy", ONE, 'cp "$PFS"/in/* "$PFS/out/"')
    follow = texts.log(LogQuery(Pipeline("default", "copy"), master=True, follow=True))
    assert any("the disk is full, retrying in 1s" in line.message for line in follow)
    texts.db.write(lambda conn: conn.execute("DROP TRIGGER full"))
    job = texts.settle("copy")
    assert (job.state, job.counters) == (JobState.SUCCESS, DatumCounters(processed=2, total=2))
    assert job.restart >= 1
    assert texts.files("copy") == {"/a": "one", "/b": "two"}


@pytest.mark.parametrize("kind", ["user", "meta"])
def test_a_commit_finished_by_force_ends_its_job(texts: Engine, kind: str) -> None:
    texts.create("hang", ONE, "echo hanging\nsleep 60")
    texts.until(lambda: texts.lines("hang"))
    commit = texts.commit("hang", kind=kind).commit
    texts.pfs.transact(lambda txn: commits.finish_by_user(txn, commit, "", "", force=True))
    job = texts.settle("hang")
    assert (job.state, job.reason) == (JobState.KILLED, "output commit was finished by force")
    assert all(texts.commit("hang", kind=each).finished is not None for each in ("user", "meta"))
    texts.until(lambda: texts.pps.jobs.inspect(job.job).worker_status == ())


def test_a_pipeline_works_again_after_its_deleted_output_branch_is_restored(texts: Engine) -> None:
    copy = texts.request("copy", ONE, 'cp "$PFS"/in/* "$PFS/out/"')
    texts.submit(copy)
    texts.settle("copy")
    texts.pfs.transact(lambda txn: branches.delete(txn, Branch(Repo("default", "copy"), "master"), force=True))
    texts.put("texts", {"/c": "three"})
    assert texts.commit("copy", kind="meta").error == "there is no output branch"
    texts.submit({**copy, "update": True})
    assert texts.settle("copy").state is JobState.SUCCESS
    assert sorted(texts.files("copy")) == ["/a", "/b", "/c"]


def test_pipelines_without_output_branches_can_be_deleted_together(texts: Engine) -> None:
    for name, source in (("first", "texts"), ("second", "first"), ("third", "second")):
        texts.create(name, {"pfs": {"repo": source, "name": "in", "glob": "/*"}}, "true")
        texts.settle(name)
    texts.pfs.transact(lambda txn: branches.delete(txn, Branch(Repo("default", "third"), "master"), force=True))
    assert {each.name for each in texts.pps.delete_pipelines()} == {"first", "second", "third"}


@pytest.mark.parametrize("with_pipeline", [False, True])
def test_a_job_whose_commits_were_deleted_as_it_started_ends_silently(
    texts: Engine, caplog: pytest.LogCaptureFixture, with_pipeline: bool
) -> None:
    texts.create("hang", ONE, "sleep 60")
    texts.put("texts", {"/c": "three"})
    info = texts.jobs("hang")[0]
    if with_pipeline:
        texts.pps.delete_pipeline(Pipeline("default", "hang"))
    else:
        texts.pfs.transact(lambda txn: commit_removal.drop_set(txn, info.job.id))
    over: queue.Queue[BaseRun] = queue.Queue()
    JobRun(texts.pfs, texts.runner, info, WorkerPod(), over.put).start()
    assert over.get(timeout=60).job == info.job
    assert caplog.records == []


def test_a_jobs_state_set_in_a_step_wins_over_the_end_of_its_commits(texts: Engine) -> None:
    texts.create("hang", ONE, "sleep 60")
    texts.put("texts", {"/c": "three"})
    job = texts.jobs("hang")[0].job

    def step(txn: Transaction) -> None:
        commit_removal.drop_set(txn, job.id)
        jobs.stop(txn, job, "enough")

    texts.pfs.transact(step)
    info = texts.pps.jobs.inspect(job)
    assert (info.state, info.reason) == (JobState.KILLED, "enough")


def test_a_jobs_state_can_be_set(texts: Engine) -> None:
    texts.create("hang", ONE, "echo hanging\nsleep 60")
    texts.until(lambda: texts.lines("hang"))
    job, counters = texts.jobs("hang")[0].job, DatumCounters(processed=1, total=2)

    def tell(state: JobState, reason: str = "") -> JobInfo:
        texts.pfs.transact(lambda txn: jobs.update(txn, job, state, reason, 4, counters, DatumStats(upload_bytes=9)))
        return texts.pps.jobs.inspect(job)

    info = tell(JobState.EGRESSING, "nearly done")
    assert (info.state, info.reason, info.restart) == (JobState.EGRESSING, "nearly done", 4)
    assert (info.counters, info.stats) == (counters, DatumStats(upload_bytes=9))
    assert texts.commit("hang").finished is None
    info = tell(JobState.SUCCESS)
    assert (info.state, info.reason) == (JobState.SUCCESS, "") and info.finished is not None
    assert all(texts.commit("hang", kind=each).finished is not None for each in ("user", "meta"))
    texts.until(lambda: texts.pps.jobs.inspect(job).worker_status == ())
    with pytest.raises(PachError, match="has already finished"):
        tell(JobState.RUNNING)


def test_a_line_about_a_deleted_pipeline_is_not_in_the_log_of_its_successor(texts: Engine) -> None:
    texts.create("copy", ONE, "true")
    job = texts.settle("copy").job
    texts.pps.delete_pipeline(job.pipeline)
    texts.pfs.transact(lambda txn: log_rows.add_server_line(txn, job, "too late"))
    texts.create("copy", ONE, "true")
    texts.settle("copy")
    assert all(line.message != "too late" for line in texts.log(LogQuery(job.pipeline, master=True)))


class TestStrictGpus:
    @pytest.fixture
    def gpus(self) -> GpuPool:
        return GpuPool(strict=True)

    def test_pipelines_that_need_a_gpu_wait_and_others_run(self, texts: Engine) -> None:
        texts.create("wants", ONE, "true", resource_limits=GPU)
        texts.create("does-not", ONE, "true")
        assert texts.settle("does-not").state is JobState.SUCCESS
        wants = Pipeline("default", "wants")
        info = texts.until(
            lambda: (found := texts.pps.inspect_pipeline(wants)).state is PipelineState.CRASHING and found
        )
        assert info.reason == "unschedulable: a worker asks for 1 GPUs, this machine has 0"
        assert texts.jobs("wants")[0].state is JobState.CREATED
        texts.create("wants", ONE, "true", update=True)
        assert texts.settle("wants").state is JobState.SUCCESS


class TestOneGpu:
    @pytest.fixture
    def gpus(self) -> GpuPool:
        return GpuPool(("0",))

    def test_workers_share_the_only_gpu_in_turns(self, texts: Engine) -> None:
        say = 'echo "$CUDA_VISIBLE_DEVICES" > "$PFS/out/$PACH_DATUM_ID"'
        texts.create("wants", ONE, say, resource_limits=GPU, parallelism_spec={"constant": "2"})
        assert texts.settle("wants").state is JobState.SUCCESS
        assert list(texts.files("wants").values()) == ["0\n", "0\n"]
        assert texts.pps.inspect_pipeline(Pipeline("default", "wants")).reason == ""


def test_a_job_with_too_many_datums_fails_with_the_reason(engine: Engine) -> None:
    engine.repo("texts")
    engine.put("texts", {f"/{number}": "x" for number in range(130)})
    members = [pfs_input("texts", "/*", name=name) for name in "abc"]
    engine.create("cross", {"cross": members}, "true")
    job = engine.settle("cross")
    assert job.state is JobState.FAILURE
    assert job.reason.startswith("the cross has 2197000 datums, and a job may have 2000000: ")
