"""Jobs end to end: real files, real processes, the rules of skipping, failing and cascading; `tests/parity` has those
that a client sees of one job, one update and one restart."""

import os
from pathlib import Path
from typing import Any

import pytest

from localpachd.api.messages import pps_messages
from localpachd.errors import NotFound, PachError
from localpachd.pfs import branches, commit_removal, commits, repos
from localpachd.pfs.pfs_entities import Branch, Commit, Repo
from localpachd.pps import jobs, pipelines
from localpachd.pps.log_queries import LogQuery, LogSearch, search
from localpachd.pps.pps_entities import Job, JobInfo, JobState, LogLevel, Pipeline, PipelineState
from localpachd.worker.tasks import DatumOutcome
from tests.localpachd.pps.engine import Engine, blocking

SHOUT = 'for f in "$PFS"/in/*; do tr a-z A-Z < "$f" > "$PFS/out/$(basename "$f")"; echo "read $(basename "$f")"; done'


def only(repo: str, glob: str = "/*", **fields: Any) -> dict[str, Any]:
    return {"pfs": {"repo": repo, "name": "in", "glob": glob, **fields}}


def counted(job: JobInfo) -> tuple[int, int, int]:
    return (job.counters.processed, job.counters.skipped, job.counters.total)


@pytest.fixture
def shout(engine: Engine) -> Engine:
    engine.repo("texts")
    engine.put("texts", {"/a": "one", "/b": "two"})
    engine.create("shout", only("texts"), SHOUT)
    return engine


def test_lazy_inputs_leave_no_copy_in_the_meta_commit(engine: Engine) -> None:
    engine.repo("texts")
    engine.put("texts", {"/a": "one"})
    engine.create("shout", only("texts", lazy=True), 'cat "$PFS/in/a" > "$PFS/out/a"')
    datum = engine.datums(engine.settle("shout").job)["/a"]
    found = engine.files("shout", kind="meta")
    assert f"/pfs/{datum.id}/in/a" not in found
    assert found[f"/pfs/{datum.id}/out/a"] == "one"


def test_a_failed_datum_fails_the_job_and_nothing_of_it_is_a_base(shout: Engine) -> None:
    shout.settle("shout")
    shout.create("shout", only("texts"), f'test ! -e "$PFS/in/bad"\n{SHOUT}', datum_tries="1", update=True)
    shout.settle("shout")
    shout.put("texts", {"/bad": "x", "/c": "new", "/b": "changed"})
    job = shout.settle("shout")
    bad = shout.datums(job.job)["/bad"]
    assert (job.state, job.reason) == (JobState.FAILURE, f"datum {bad.id} failed")
    assert (bad.outcome, bad.reason != "") == (DatumOutcome.FAILED, True)
    # The other new datum was processed; the changed one, which belongs to the second phase, was not.
    assert (job.counters.processed, job.counters.failed) == (1, 1)
    for kind in ("user", "meta"):
        assert shout.commit("shout", job.job.id, kind).error == job.reason
    assert shout.files("shout", job.job.id) == {"/a": "ONE", "/b": "TWO", "/c": "NEW"}
    shout.put("texts", {"/bad": None})
    mended = shout.settle("shout")
    assert (mended.state, counted(mended)) == (JobState.SUCCESS, (2, 1, 3))
    assert shout.files("shout") == {"/a": "ONE", "/b": "CHANGED", "/c": "NEW"}


def test_every_job_reprocesses_every_time(engine: Engine) -> None:
    engine.repo("texts")
    engine.put("texts", {"/a": "one"})
    engine.create("shout", only("texts"), SHOUT, reprocess_spec="every_job")
    engine.settle("shout")
    engine.put("texts", {"/b": "two"})
    assert counted(engine.settle("shout")) == (2, 0, 2)
    assert engine.files("shout") == {"/a": "ONE", "/b": "TWO"}


HANG = "echo hanging; sleep 60"


def hanging(engine: Engine, **fields: Any) -> Job:
    engine.repo("texts")
    engine.put("texts", {"/a": "one"})
    engine.create("hang", only("texts"), HANG, **fields)
    engine.until(lambda: engine.lines("hang"))
    return engine.jobs("hang")[0].job


def test_update_kills_the_running_job_and_covers_its_input(engine: Engine) -> None:
    old = hanging(engine)
    engine.create("hang", only("texts"), SHOUT, update=True)
    info = engine.pps.jobs.inspect(old)
    reason = "all jobs killed because pipeline was updated for user unknown_username"
    assert (info.state, info.reason) == (JobState.KILLED, reason)
    assert counted(engine.settle("hang")) == (1, 0, 1)
    assert engine.files("hang") == {"/a": "ONE"}


def test_a_stopped_pipeline_has_no_running_job_and_stays_stopped_when_it_is_updated(engine: Engine) -> None:
    job = hanging(engine)
    engine.step(pipelines.stop, job.pipeline)
    reason = "all jobs killed because pipeline was stopped for user unknown_username"
    assert engine.pps.jobs.inspect(job).reason == reason
    engine.until(lambda: engine.pps.inspect_pipeline(job.pipeline).state is PipelineState.PAUSED)
    engine.create("hang", only("texts"), SHOUT, update=True)
    assert engine.pps.inspect_pipeline(job.pipeline).stopped


def test_delete_pipeline_ends_all_of_its_jobs_and_repos(engine: Engine) -> None:
    job = hanging(engine)
    engine.pps.delete_pipeline(job.pipeline)
    with pytest.raises(NotFound, match=f"jobs default/hang@{job.id} not found"):
        engine.pps.jobs.inspect(job)
    with pytest.raises(NotFound, match='pipeline "default/hang" not found'):
        list(engine.pps.jobs.list_all(job.pipeline))
    with engine.db.read() as conn:
        assert not any(each.repo.name == "hang" for each in repos.list_all(conn))
    engine.pps.delete_pipeline(job.pipeline)  # no error
    engine.create("hang", only("texts"), SHOUT)  # the name is free again
    assert engine.settle("hang").state is JobState.SUCCESS


def test_autoscaling_pipelines_are_in_standby_between_jobs(engine: Engine) -> None:
    engine.repo("texts")
    engine.put("texts", {"/a": "one"})
    engine.create("shout", only("texts"), SHOUT, autoscaling=True)
    assert engine.settle("shout").state is JobState.SUCCESS
    pipeline = Pipeline("default", "shout")
    engine.until(lambda: engine.pps.inspect_pipeline(pipeline).state is PipelineState.STANDBY)
    shown = pps_messages.pipeline_info(engine.pps.inspect_pipeline(pipeline), workers=True)
    assert (shown.details.workers_requested, shown.details.workers_available) == (1, 0)


def test_gpu_pipelines_run_on_the_cpu_and_report_it(engine: Engine) -> None:
    engine.repo("texts")
    engine.put("texts", {"/a": "one"})
    limits = {"gpu": {"type": "nvidia.com/gpu", "number": "1"}}
    engine.create("shout", only("texts"), SHOUT, resource_limits=limits)
    assert engine.settle("shout").state is JobState.SUCCESS
    assert engine.pps.inspect_pipeline(Pipeline("default", "shout")).reason == "no GPU here: running on the CPU"


def test_deleting_a_job_row_does_not_confuse_the_next_job(shout: Engine) -> None:
    shout.settle("shout")
    shout.put("texts", {"/a": None})
    job = shout.settle("shout").job
    shout.step(jobs.delete, job)
    shout.put("texts", {"/a": "one"})
    assert counted(shout.settle("shout")) == (1, 1, 2)
    assert shout.files("shout") == {"/a": "ONE", "/b": "TWO"}


def test_logs_are_filtered_and_followed(shout: Engine) -> None:
    job = shout.settle("shout").job
    datum = shout.datums(job)["/a"]
    pipeline = job.pipeline
    for query in (
        LogQuery(job=job, datum=datum.id),
        LogQuery(pipeline, data_filters=("/a",)),
        LogQuery(pipeline, job, data_filters=("/a", datum.inputs[0].hash.hex())),
    ):
        assert [line.message for line in shout.log(query) if line.user] == ["read a"]
    assert not list(shout.log(LogQuery(pipeline, data_filters=("/a", "/b"))))
    assert not [line for line in shout.log(LogQuery(pipeline)) if line.master]
    [last] = shout.log(LogQuery(pipeline, tail=1))
    assert last == list(shout.log(LogQuery(pipeline)))[-1]
    for query, text in (
        (LogQuery(datum="x"), "must specify the Job or Pipeline that the datum is from to get logs for it"),
        (LogQuery(job=Job(Pipeline("default", ""), "1")), "pipeline must be specified for the given job"),
        (LogQuery(Pipeline("default", "other"), job), "job is from the wrong pipeline"),
        (LogQuery(job=Job(pipeline, "1")), 'could not get job information for "1": jobs default/shout@1 not found'),
    ):
        with pytest.raises(PachError) as wrong:
            list(shout.log(query))
        assert str(wrong.value) == text
    following = shout.log(LogQuery(pipeline, data_filters=("/late",), follow=True))
    shout.put("texts", {"/late": "x"})
    assert next(line.message for line in following if line.user) == "read late"


def test_the_servers_lines_about_a_pipeline_and_its_jobs_are_those_of_its_master(engine: Engine) -> None:
    engine.repo("texts")
    engine.put("texts", {"/a": "one"})
    engine.create("picky", only("texts"), '! grep -q bad "$PFS"/in/*', datum_tries="1")
    good = engine.settle("picky").job
    engine.put("texts", {"/b": "bad"})
    failed = engine.settle("picky").job
    lines = list(engine.log(LogQuery(good.pipeline, master=True)))
    assert all(line.master and not line.user for line in lines)
    assert "PIPELINE_RUNNING" in [line.message for line in lines if not line.job]
    said = {job: [(line.message, line.level) for line in lines if line.job == job.id] for job in (good, failed)}
    assert said[good] == [
        ("datums: 1 new, 0 to be processed again, 0 skipped, 0 done before a restart; 1 in all", LogLevel.INFO),
        ("JOB_SUCCESS", LogLevel.INFO),
    ]
    bad = engine.datums(failed)["/b"].id
    assert said[failed][-1] == (f"JOB_FAILURE: datum {bad} failed", LogLevel.ERROR)
    assert list(engine.log(LogQuery(job=good, master=True))) == [line for line in lines if line.job == good.id]
    with engine.db.read() as conn:
        errors = list(search(conn, LogSearch(pipeline="picky", level=LogLevel.ERROR)))
    assert [line.message for line in errors] == [f"JOB_FAILURE: datum {bad} failed"]


@pytest.mark.parametrize("ending", ["stop", "delete", "replace"])
def test_a_followed_log_ends_with_its_pipeline(shout: Engine, ending: str) -> None:
    job = shout.settle("shout").job
    pipeline = job.pipeline
    following = shout.log(LogQuery(pipeline, job, follow=True))
    before = list(shout.log(LogQuery(pipeline, job)))
    assert [next(following) for _ in before] == before
    if ending == "stop":
        shout.step(pipelines.stop, pipeline)
    else:
        shout.pps.delete_pipeline(pipeline)
    if ending == "replace":
        shout.create("shout", only("texts"), SHOUT)
    assert not list(following)
    if ending == "stop":
        assert list(shout.log(LogQuery(pipeline, job, follow=True))) == before


def test_a_followed_log_continues_with_the_next_version(shout: Engine) -> None:
    following = shout.log(LogQuery(shout.settle("shout").job.pipeline, follow=True, data_filters=("/late",)))
    shout.create("shout", only("texts"), SHOUT, update=True)
    shout.put("texts", {"/late": "x"})
    assert next(line.message for line in following if line.user) == "read late"


def test_subscribing_shows_each_unfinished_job_once(engine: Engine) -> None:
    engine.repo("texts")
    engine.create("shout", only("texts"), SHOUT)
    engine.settle("shout")
    stream = blocking(engine.pps.jobs.subscribe(Pipeline("default", "shout"), lambda: True))
    repo = Repo("default", "texts")
    opened = engine.pfs.transact(lambda txn: commits.start(txn, Branch(repo, "master")))
    assert next(stream).job.id == opened.commit.id
    engine.pfs.transact(lambda txn: commits.finish(txn, opened))


def test_a_job_without_its_meta_commit_is_killed(engine: Engine, tmp_path: Path) -> None:
    """It could not go on, and would try for ever."""
    go = tmp_path / "go"
    os.mkfifo(go)
    engine.repo("texts")
    engine.put("texts", {"/a": "one"})
    engine.create("wait", only("texts"), f"cat {go}")
    (job,) = engine.until(lambda: [each for each in engine.jobs("wait") if each.state == JobState.RUNNING])
    engine.pfs.transact(lambda txn: commit_removal.drop(txn, Commit(Repo("default", "wait", "meta"), job.job.id)))
    ended = engine.settle("wait")
    assert (ended.state, ended.reason) == (JobState.KILLED, "meta commit removed")


def test_a_job_that_never_had_a_meta_commit_is_killed(shout: Engine) -> None:
    shout.settle("shout")
    meta = Branch(Repo("default", "shout", "meta"), "master")
    shout.pfs.transact(lambda txn: branches.delete(txn, meta, force=True))
    shout.put("texts", {"/c": "three"})
    ended = shout.settle("shout")
    assert (ended.state, ended.reason) == (JobState.KILLED, "meta commit removed")
