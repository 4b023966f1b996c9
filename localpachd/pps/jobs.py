"""Jobs as rows: made when an output commit is opened, ended together with its commits. Runs nothing."""

import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from functools import lru_cache

from localpachd.errors import NotFound, PachError
from localpachd.pfs import commits
from localpachd.pfs.entities import META, USER, Commit, CommitInfo, Repo
from localpachd.pfs.transaction import Transaction
from localpachd.pps import spec
from localpachd.pps.entities import Activity, Counters, Job, JobInfo, JobState, Pipeline
from localpachd.worker.tasks import Stats

parsed = lru_cache(maxsize=256)(spec.from_json)
"""The specification kept as a text in the database, read once."""
_UNFINISHED = tuple(each for each in JobState if not each.terminal)


def commits_opened(txn: Transaction, opened: Sequence[CommitInfo]) -> None:
    """Makes a job for every commit just opened on the output branch of a pipeline, and ends meta commits without one:
    the real server leaves them open, and then no later job ever finds its base finished."""
    for info in opened:
        if _lacks_output(txn.conn, info):
            commits.finish(txn, info.commit, error="there is no output branch")
        if info.commit.repo.type != USER or info.finishing is not None:
            continue
        pipeline = Pipeline(info.commit.repo.project, info.commit.repo.name)
        row = txn.conn.execute(
            "SELECT version, spec FROM pipelines WHERE project = ? AND name = ? ORDER BY version DESC LIMIT 1",
            (pipeline.project, pipeline.name),
        ).fetchone()
        if row is None:
            continue
        details = parsed(row["spec"])
        if details.output_branch != info.commit.branch or details.kind is spec.Kind.SPOUT:
            continue
        txn.conn.execute(
            "INSERT OR IGNORE INTO jobs (project, pipeline, id, version, state, created) VALUES (?, ?, ?, ?, ?, ?)",
            (pipeline.project, pipeline.name, info.commit.id, row["version"], JobState.CREATED, txn.now),
        )
        txn.changed.add(pipeline)


def _lacks_output(conn: sqlite3.Connection, info: CommitInfo) -> bool:
    repo = info.commit.repo
    if repo.type != META or info.finishing is not None:
        return False
    return commits.find(conn, Repo(repo.project, repo.name), info.commit.id) is None


def inspect(conn: sqlite3.Connection, job: Job) -> JobInfo:
    """A job; NotFound where there is none."""
    return _info(conn, _row(conn, job))


def state(conn: sqlite3.Connection, job: Job) -> JobState | None:
    """A job's state, or None where there is no such job."""
    row = _find(conn, job)
    return JobState(row["state"]) if row is not None else None


def last_state(conn: sqlite3.Connection, pipeline: Pipeline, version: int | None = None) -> JobState:
    """The state of a pipeline's newest job, of those up to a version if one is given."""
    row = conn.execute(
        "SELECT state FROM jobs WHERE project = ? AND pipeline = ? AND (? IS NULL OR version <= ?) "
        "ORDER BY seq DESC LIMIT 1",
        (pipeline.project, pipeline.name, version, version),
    ).fetchone()
    return JobState(row["state"]) if row else JobState.UNKNOWN


def unfinished(
    conn: sqlite3.Connection, only: Collection[Pipeline] | None = None
) -> Iterator[tuple[Job, int, JobState]]:
    """Every job that is not over, of all pipelines or `only` of these, with its pipeline's version and its state, in
    order of creation."""
    where, values = among("pipeline", only)
    rows = conn.execute(
        f"SELECT project, pipeline, id, version, state FROM jobs WHERE finished IS NULL AND {where} ORDER BY seq",
        values,
    )
    for row in rows.fetchall():
        yield Job(Pipeline(row["project"], row["pipeline"]), row["id"]), row["version"], JobState(row["state"])


def among(column: str, pipelines: Collection[Pipeline] | None) -> tuple[str, tuple[str, ...]]:
    """The SQL condition, with its values, that a row belongs to one of these pipelines; None means all. `column` holds
    the pipeline's name, the column `project` its project."""
    if pipelines is None:
        return "TRUE", ()
    pairs = json.dumps([(each.project, each.name) for each in pipelines])
    some = "SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?)"
    return f"(project, {column}) IN ({some})", (pairs,)


def listed(
    conn: sqlite3.Connection,
    pipeline: Pipeline | None = None,
    versions: Collection[tuple[Pipeline, int]] = (),
    reverse: bool = False,
) -> Iterator[JobInfo]:
    """The jobs of these versions of pipelines, newest first or, with `reverse`, oldest first. Streams."""
    order = "ASC" if reverse else "DESC"
    where, values = ("WHERE project = ? AND pipeline = ?", (pipeline.project, pipeline.name)) if pipeline else ("", ())
    for row in conn.execute(f"SELECT * FROM jobs {where} ORDER BY seq {order}", values):
        if (Pipeline(row["project"], row["pipeline"]), row["version"]) in versions:
            yield _info(conn, row)


def of_set(conn: sqlite3.Connection, commit_set: str) -> list[JobInfo]:
    """The jobs of a commit set, upstream first: a pipeline's output is opened after what it is made from."""
    rows = conn.execute("SELECT * FROM jobs WHERE id = ? ORDER BY seq", (commit_set,)).fetchall()
    return [_info(conn, row) for row in rows]


def sets(conn: sqlite3.Connection) -> list[str]:
    """The ids of all job sets, the one with the newest job first."""
    return [row[0] for row in conn.execute("SELECT id FROM jobs GROUP BY id ORDER BY MAX(seq) DESC")]


def pick_up(txn: Transaction, job: Job) -> None:
    """CREATED becomes STARTING."""
    _update(txn, job, (JobState.CREATED,), state=JobState.STARTING)


def begin(txn: Transaction, job: Job) -> bool:
    """STARTING becomes RUNNING; one that was past that begins again and counts a restart. Returns whether the job is
    there to be run."""
    if _update(txn, job, (JobState.STARTING,), state=JobState.RUNNING, started=txn.now):
        return True
    row = _find(txn.conn, job)
    return row is not None and _update(
        txn, job, (JobState.RUNNING, JobState.EGRESSING), state=JobState.RUNNING, restart=row["restart"] + 1
    )


def begin_egress(txn: Transaction, job: Job) -> bool:
    """RUNNING becomes EGRESSING. Returns whether the job is there to be gone on with."""
    return _update(txn, job, (JobState.RUNNING, JobState.EGRESSING), state=JobState.EGRESSING)


def count(txn: Transaction, job: Job, counters: Counters, stats: Stats) -> bool:
    """Stores a running job's progress. Returns whether the job still runs."""
    txn.changed.add(Activity(job.pipeline))
    return _set(txn.conn, job, (JobState.RUNNING,), **asdict(counters), stats=json.dumps(asdict(stats)))


def succeed(txn: Transaction, job: Job) -> None:
    """Ends a job whose datums are all done: finishes its commits. A fault that the output's validation finds makes the
    job a failed one, and the meta commit too, so that neither is a base for later jobs."""
    _finish(txn, job, (JobState.RUNNING, JobState.EGRESSING))


def conclude(txn: Transaction, job: Job) -> None:
    """Ends a service's job, whose place a newer one takes, wherever it stands; not if no newer one is left."""
    newer = txn.conn.execute(
        "SELECT 1 FROM jobs WHERE finished IS NULL AND project = ? AND pipeline = ? AND seq > ?",
        (job.pipeline.project, job.pipeline.name, _row(txn.conn, job)["seq"]),
    ).fetchone()
    if newer is None:
        return
    _finish(txn, job, (JobState.CREATED, JobState.STARTING, JobState.RUNNING))


def _finish(txn: Transaction, job: Job, states: Collection[JobState]) -> None:
    if not _update(txn, job, states, state=JobState.FINISHING):
        return
    fault = _close(txn, job.output, "")
    _close(txn, job.meta, fault)
    _end(txn, job, JobState.FAILURE if fault else JobState.SUCCESS, fault)


def fail(txn: Transaction, job: Job, state_: JobState, reason: str) -> None:
    """Ends a job that is not over yet in another terminal state; its commits are finished with the reason as error."""
    now = _row(txn.conn, job)
    if JobState(now["state"]).terminal:
        return
    _end(txn, job, state_, reason)
    for commit in (job.meta, job.output):
        _close(txn, commit, reason)


def stop(txn: Transaction, job: Job, reason: str = "") -> None:
    """Kills a job; one that is over already stays as it is. NotFound where there is none."""
    fail(txn, job, JobState.KILLED, reason or "job stopped")


def update(
    txn: Transaction, job: Job, state_: JobState, reason: str, restart: int, counters: Counters, stats: Stats
) -> None:
    """Sets what is known of a job that is not over. With a terminal state its commits end too, if they have not: the
    real server would leave them open for ever."""
    now = _row(txn.conn, job)
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
    for job, _, _ in list(unfinished(txn.conn, [pipeline])):
        stop(txn, job, f"{reason} for user unknown_username")


def delete(txn: Transaction, job: Job) -> None:
    """Stops a job and forgets it; its commits stay."""
    stop(txn, job, "job deleted")
    txn.changed.add(job.pipeline)
    txn.conn.execute(
        "DELETE FROM jobs WHERE project = ? AND pipeline = ? AND id = ?",
        (job.pipeline.project, job.pipeline.name, job.id),
    )


def commit_finished(txn: Transaction, commit: CommitInfo) -> None:
    """Kills the job of an output or meta commit that somebody finished by force."""
    repo = commit.commit.repo
    job = Job(Pipeline(repo.project, repo.name), commit.commit.id)
    if repo.type not in (USER, META):
        return
    now = state(txn.conn, job)
    if now is not None and not now.terminal and now is not JobState.FINISHING:
        fail(txn, job, JobState.KILLED, commit.error or "output commit was finished by force")


def commits_removed(txn: Transaction, removed: Sequence[CommitInfo]) -> None:
    """Kills the jobs of output commits that were deleted."""
    for info in removed:
        job = job_of(info.commit)
        if job is not None and state(txn.conn, job) is not None and not _row(txn.conn, job)["finished"]:
            _end(txn, job, JobState.KILLED, "output commit removed")


def job_of(commit: Commit) -> Job | None:
    """The job that an output commit belongs to, if its repo is a pipeline's; None for system repos."""
    if commit.repo.type != USER:
        return None
    return Job(Pipeline(commit.repo.project, commit.repo.name), commit.id)


def _close(txn: Transaction, commit: Commit, error: str) -> str:
    """Finishes a job's commit, unless it is gone or finished already; returns the fault it ends with."""
    info = commits.find(txn.conn, commit.repo, commit.id)
    if info is not None and info.finishing is None:
        info = commits.finish(txn, info.commit, error=error)
    return info.error if info else error


def _end(txn: Transaction, job: Job, state_: JobState, reason: str) -> None:
    row = _row(txn.conn, job)
    started = row["started"] if row["started"] is not None else txn.now
    if not _update(txn, job, _UNFINISHED, state=state_, reason=reason, started=started, finished=txn.now):
        raise PachError(f"job {job} has already finished")


def _update(txn: Transaction, job: Job, states: Collection[JobState], **values: object) -> bool:
    """Changes a job if it is in one of the states; returns whether it was."""
    txn.changed.add(job.pipeline)
    return _set(txn.conn, job, states, **values)


def _set(conn: sqlite3.Connection, job: Job, states: Collection[JobState], **values: object) -> bool:
    changes = ", ".join(f"{column} = ?" for column in values)
    marks = ", ".join("?" * len(states))
    done = conn.execute(
        f"UPDATE jobs SET {changes} WHERE project = ? AND pipeline = ? AND id = ? AND state IN ({marks})",
        (*values.values(), job.pipeline.project, job.pipeline.name, job.id, *states),
    )
    return done.rowcount == 1


def _find(conn: sqlite3.Connection, job: Job) -> sqlite3.Row | None:
    row: sqlite3.Row | None = conn.execute(
        "SELECT * FROM jobs WHERE project = ? AND pipeline = ? AND id = ?",
        (job.pipeline.project, job.pipeline.name, job.id),
    ).fetchone()
    return row


def _row(conn: sqlite3.Connection, job: Job) -> sqlite3.Row:
    row = _find(conn, job)
    if row is None:
        raise NotFound(f"jobs {job} not found")
    return row


def _info(conn: sqlite3.Connection, row: sqlite3.Row) -> JobInfo:
    pipeline = Pipeline(row["project"], row["pipeline"])
    text = conn.execute(
        "SELECT spec FROM pipelines WHERE project = ? AND name = ? AND version = ?",
        (pipeline.project, pipeline.name, row["version"]),
    ).fetchone()["spec"]
    details = parsed(text)
    job = Job(pipeline, row["id"])
    return JobInfo(
        job=job,
        version=row["version"],
        output_commit=Commit(job.pipeline.repo, job.id, details.output_branch),
        state=JobState(row["state"]),
        reason=row["reason"],
        restart=row["restart"],
        counters=Counters(row["processed"], row["skipped"], row["total"], row["failed"], row["recovered"]),
        stats=Stats(**json.loads(row["stats"])),
        created=row["created"],
        started=row["started"],
        finished=row["finished"],
        spec=details,
    )
