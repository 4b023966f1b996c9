"""The life of jobs: created with an output commit, ended together with its commits. Runs nothing."""

import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict

from localpachd.errors import PachError
from localpachd.pfs import commits
from localpachd.pfs.pfs_entities import META, USER, Commit, CommitInfo, Repo
from localpachd.pfs.transaction import Transaction
from localpachd.pps import job_rows, log_rows, pipeline_rows
from localpachd.pps.pps_entities import DatumCounters, Job, JobState, JobStates, LogLevel, Pipeline, PipelineActivity
from localpachd.pps.specs import spec
from localpachd.worker.tasks import DatumStats

_UNFINISHED = tuple(each for each in JobState if not each.terminal)


def commits_opened(txn: Transaction, opened: Sequence[CommitInfo]) -> None:
    """Creates a job for every new commit on the output branch of a pipeline, and finishes meta commits without an
    output commit: Pachyderm leaves these open, and then no later job ever finds its base finished."""
    repos = {info.commit.repo for info in opened}
    for info in opened:
        if _lacks_output(txn.conn, info, repos):
            commits.finish(txn, info, error="there is no output branch")
        if info.commit.repo.type != USER or info.finishing is not None:
            continue
        pipeline = Pipeline(info.commit.repo.project, info.commit.repo.name)
        row = pipeline_rows.newest(txn.conn, pipeline)
        if row is None:
            continue
        details = spec.from_json(row["spec"])
        if details.output_branch != info.commit.branch or details.kind is spec.PipelineKind.SPOUT:
            continue
        txn.conn.execute(
            "INSERT OR IGNORE INTO jobs (project, pipeline, id, version, state, created) VALUES (?, ?, ?, ?, ?, ?)",
            (pipeline.project, pipeline.name, info.commit.id, row["version"], JobState.CREATED, txn.now),
        )
        txn.changed.add(JobStates(pipeline))


def _lacks_output(conn: sqlite3.Connection, info: CommitInfo, opened: Collection[Repo]) -> bool:
    repo = info.commit.repo
    if repo.type != META or info.finishing is not None:
        return False
    output = Repo(repo.project, repo.name)
    return output not in opened and commits.find(conn, output, info.commit.id) is None


def pick_up(txn: Transaction, job: Job) -> None:
    """CREATED becomes STARTING."""
    _update(txn, job, (JobState.CREATED,), state=JobState.STARTING)


def begin(txn: Transaction, job: Job) -> bool:
    """STARTING becomes RUNNING; a job that was RUNNING or EGRESSING starts again and counts a restart. Returns whether
    the job is to be run."""
    if _update(txn, job, (JobState.STARTING,), state=JobState.RUNNING, started=txn.now):
        return True
    row = job_rows.find(txn.conn, job)
    return row is not None and _update(
        txn, job, (JobState.RUNNING, JobState.EGRESSING), state=JobState.RUNNING, restart=row["restart"] + 1
    )


def begin_egress(txn: Transaction, job: Job) -> bool:
    """RUNNING becomes EGRESSING. Returns whether the job is still to be run."""
    return _update(txn, job, (JobState.RUNNING, JobState.EGRESSING), state=JobState.EGRESSING)


def count(txn: Transaction, job: Job, counters: DatumCounters, stats: DatumStats) -> bool:
    """Stores the counters of a running job. Returns whether the job still runs."""
    txn.changed.add(PipelineActivity(job.pipeline))
    return _set(txn.conn, job, (JobState.RUNNING,), **asdict(counters), stats=json.dumps(asdict(stats)))


def succeed(txn: Transaction, job: Job) -> None:
    """Closes the output of a job whose datums are all done. The job ends when that is finished; if it is invalid, the
    job and both commits fail, so that neither commit is a base for later jobs."""
    _finish(txn, job, (JobState.RUNNING, JobState.EGRESSING))


def conclude(txn: Transaction, job: Job) -> None:
    """Ends a service's job in any state, if a newer unfinished job is there to take its place."""
    newer = txn.conn.execute(
        "SELECT 1 FROM jobs WHERE finished IS NULL AND project = ? AND pipeline = ? AND seq > ?",
        (job.pipeline.project, job.pipeline.name, job_rows.row_of(txn.conn, job)["seq"]),
    ).fetchone()
    if newer is None:
        return
    _finish(txn, job, (JobState.CREATED, JobState.STARTING, JobState.RUNNING))


def _finish(txn: Transaction, job: Job, states: Collection[JobState]) -> None:
    if not _update(txn, job, states, state=JobState.FINISHING):
        return
    output = commits.find(txn.conn, job.output.repo, job.output.id)
    if output is None or output.finished is not None:
        _finished(txn, job, output.error if output is not None else "")
    elif output.finishing is None:
        commits.finish(txn, output)


def _finished(txn: Transaction, job: Job, fault: str) -> None:
    _close(txn, job.meta, fault)
    _end(txn, job, JobState.FAILURE if fault else JobState.SUCCESS, fault)


def fail(txn: Transaction, job: Job, state_: JobState, reason: str) -> None:
    """Ends a job, if it is not over, in a terminal state; its commits are finished with the reason as their error."""
    now = job_rows.row_of(txn.conn, job)
    if JobState(now["state"]).terminal:
        return
    _end(txn, job, state_, reason)
    for commit in (job.meta, job.output):
        _close(txn, commit, reason)


def stop(txn: Transaction, job: Job, reason: str = "") -> None:
    """Kills a job if it is not over. NotFound for an unknown one."""
    fail(txn, job, JobState.KILLED, reason or "job stopped")


def update(
    txn: Transaction, job: Job, state_: JobState, reason: str, restart: int, counters: DatumCounters, stats: DatumStats
) -> None:
    """Sets the state and the counters of a job that is not over. A terminal state finishes its commits, too: Pachyderm
    would leave them open for ever."""
    now = job_rows.row_of(txn.conn, job)
    progress = {"restart": restart, **asdict(counters), "stats": json.dumps(asdict(stats))}
    if not _update(txn, job, _UNFINISHED, **progress):
        raise PachError(f"job {job} has already finished")
    if state_ is JobState.SUCCESS:
        _finish(txn, job, _UNFINISHED)
    elif state_.terminal:
        fail(txn, job, state_, reason)
    else:
        begins = (now["state"], state_) == (JobState.STARTING, JobState.RUNNING)
        started = txn.now if begins else now["started"]
        _update(txn, job, _UNFINISHED, state=state_, reason=reason, started=started)


def stop_all(txn: Transaction, pipeline: Pipeline, reason: str) -> None:
    """Kills every unfinished job of a pipeline."""
    for job, _, _ in list(job_rows.unfinished(txn.conn, [pipeline])):
        stop(txn, job, f"{reason} for user unknown_username")


def delete(txn: Transaction, job: Job) -> None:
    """Stops a job and deletes its row; its commits stay."""
    stop(txn, job, "job deleted")
    txn.changed.add(JobStates(job.pipeline))
    txn.conn.execute(
        "DELETE FROM jobs WHERE project = ? AND pipeline = ? AND id = ?",
        (job.pipeline.project, job.pipeline.name, job.id),
    )


def commit_finished(txn: Transaction, commit: CommitInfo) -> None:
    """Ends the job of an output commit; kills that of an output or meta commit that was finished by force."""
    for job, now in _unfinished_of(txn.conn, commit.commit):
        if now is not JobState.FINISHING:
            fail(txn, job, JobState.KILLED, commit.error or "output commit was finished by force")
        elif commit.commit.repo.type == USER:
            _finished(txn, job, commit.error)


def commits_removed(txn: Transaction, removed: Sequence[CommitInfo]) -> None:
    """Kills the jobs of output and meta commits that were deleted: without both they cannot go on."""
    for info in removed:
        for job, _ in _unfinished_of(txn.conn, info.commit):
            if info.commit.repo.type == META:
                fail(txn, job, JobState.KILLED, "meta commit removed")
            else:
                _end(txn, job, JobState.KILLED, "output commit removed")


def _unfinished_of(conn: sqlite3.Connection, commit: Commit) -> Iterator[tuple[Job, JobState]]:
    """The job, if it is not over, of an output or meta commit, and its state."""
    repo = commit.repo
    job = Job(Pipeline(repo.project, repo.name), commit.id)
    now = job_rows.state(conn, job) if repo.type in (USER, META) else None
    if now is not None and not now.terminal:
        yield job, now


def _close(txn: Transaction, commit: Commit, error: str) -> None:
    """Finishes a job's commit with this error, unless it was deleted or finished."""
    info = commits.find(txn.conn, commit.repo, commit.id)
    if info is not None and info.finishing is None:
        commits.finish(txn, info, error=error)


def _end(txn: Transaction, job: Job, state_: JobState, reason: str) -> None:
    row = job_rows.row_of(txn.conn, job)
    started = row["started"] if row["started"] is not None else txn.now
    if not _update(txn, job, _UNFINISHED, state=state_, reason=reason, started=started, finished=txn.now):
        raise PachError(f"job {job} has already finished")
    level = LogLevel.INFO if state_ is JobState.SUCCESS else LogLevel.ERROR
    log_rows.add_server_line(txn, job, f"{state_}: {reason}" if reason else state_, level)


def _update(txn: Transaction, job: Job, states: Collection[JobState], **values: object) -> bool:
    """Sets columns of a job if it is in one of the states; returns whether it was."""
    txn.changed.add(JobStates(job.pipeline))
    return _set(txn.conn, job, states, **values)


def _set(conn: sqlite3.Connection, job: Job, states: Collection[JobState], **values: object) -> bool:
    changes = ", ".join(f"{column} = ?" for column in values)
    marks = ", ".join("?" * len(states))
    done = conn.execute(
        f"UPDATE jobs SET {changes} WHERE project = ? AND pipeline = ? AND id = ? AND state IN ({marks})",
        (*values.values(), job.pipeline.project, job.pipeline.name, job.id, *states),
    )
    return done.rowcount == 1
