"""The rows of jobs in the database: found, listed and read. Changes nothing."""

import json
import sqlite3
from collections.abc import Collection, Iterator

from localpachd.errors import NotFound
from localpachd.pfs.pfs_entities import USER, Commit
from localpachd.pps.pps_entities import DatumCounters, Job, JobInfo, JobState, Pipeline
from localpachd.pps.specs import spec
from localpachd.worker.tasks import DatumStats


def inspect(conn: sqlite3.Connection, job: Job) -> JobInfo:
    """A job; NotFound for an unknown one."""
    return _info(conn, row_of(conn, job))


def state(conn: sqlite3.Connection, job: Job) -> JobState | None:
    """A job's state; None for an unknown one."""
    row = find(conn, job)
    return JobState(row["state"]) if row is not None else None


def last_state(conn: sqlite3.Connection, pipeline: Pipeline, version: int | None = None) -> JobState:
    """The state of a pipeline's newest job, with `version` only of jobs up to that version."""
    row = conn.execute(
        "SELECT state FROM jobs WHERE project = ? AND pipeline = ? AND (? IS NULL OR version <= ?) "
        "ORDER BY seq DESC LIMIT 1",
        (pipeline.project, pipeline.name, version, version),
    ).fetchone()
    return JobState(row["state"]) if row else JobState.UNKNOWN


def unfinished(
    conn: sqlite3.Connection, only: Collection[Pipeline] | None = None
) -> Iterator[tuple[Job, int, JobState]]:
    """Every job that is not over, with its pipeline's version and its state, in order of creation; `only` selects
    pipelines."""
    where, values = pipeline_condition("pipeline", only)
    rows = conn.execute(
        f"SELECT project, pipeline, id, version, state FROM jobs WHERE finished IS NULL AND {where} ORDER BY seq",
        values,
    )
    for row in rows.fetchall():
        yield Job(Pipeline(row["project"], row["pipeline"]), row["id"]), row["version"], JobState(row["state"])


def pipeline_condition(column: str, pipelines: Collection[Pipeline] | None) -> tuple[str, tuple[str, ...]]:
    """An SQL condition, with its values, that selects the rows of these pipelines, None for all. The pipeline's name is
    in the column `column`, its project in `project`."""
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


def of_existing_commits(conn: sqlite3.Connection, commit_set: str) -> list[JobInfo]:
    """As `of_set`, without the jobs of output commits that were deleted, unless the whole set was."""
    rows = conn.execute(
        "SELECT * FROM jobs j WHERE id = :set AND (NOT EXISTS (SELECT 1 FROM commits WHERE id = :set) OR EXISTS ("
        "SELECT 1 FROM commits c JOIN repos r ON r.id = c.repo "
        "WHERE c.id = :set AND r.project = j.project AND r.name = j.pipeline AND r.type = :type)) ORDER BY seq",
        {"set": commit_set, "type": USER},
    ).fetchall()
    return [_info(conn, row) for row in rows]


def totals(conn: sqlite3.Connection) -> tuple[dict[str, int], dict[str, int]]:
    """The number of jobs by state, and that of their datums by outcome. Reads the row of every job."""
    rows = conn.execute(
        "SELECT state, COUNT(*), SUM(processed), SUM(skipped), SUM(failed), SUM(recovered) FROM jobs GROUP BY state"
    ).fetchall()
    outcomes = ("processed", "skipped", "failed", "recovered")
    datums = {name: sum(row[place] for row in rows) for place, name in enumerate(outcomes, 2)}
    return {row[0]: row[1] for row in rows}, datums


def sets(conn: sqlite3.Connection) -> list[str]:
    """The ids of all job sets, sorted by their newest jobs, newest first."""
    return [row[0] for row in conn.execute("SELECT id FROM jobs GROUP BY id ORDER BY MAX(seq) DESC")]


def job_of(commit: Commit) -> Job | None:
    """The job that an output commit belongs to, if its repo is a pipeline's; None for system repos."""
    if commit.repo.type != USER:
        return None
    return Job(Pipeline(commit.repo.project, commit.repo.name), commit.id)


def find(conn: sqlite3.Connection, job: Job) -> sqlite3.Row | None:
    row: sqlite3.Row | None = conn.execute(
        "SELECT * FROM jobs WHERE project = ? AND pipeline = ? AND id = ?",
        (job.pipeline.project, job.pipeline.name, job.id),
    ).fetchone()
    return row


def row_of(conn: sqlite3.Connection, job: Job) -> sqlite3.Row:
    row = find(conn, job)
    if row is None:
        raise NotFound(f"jobs {job} not found")
    return row


def _info(conn: sqlite3.Connection, row: sqlite3.Row) -> JobInfo:
    pipeline = Pipeline(row["project"], row["pipeline"])
    text = conn.execute(
        "SELECT spec FROM pipelines WHERE project = ? AND name = ? AND version = ?",
        (pipeline.project, pipeline.name, row["version"]),
    ).fetchone()["spec"]
    details = spec.from_json(text)
    job = Job(pipeline, row["id"])
    return JobInfo(
        job=job,
        version=row["version"],
        output_commit=Commit(job.pipeline.repo, job.id, details.output_branch),
        state=JobState(row["state"]),
        reason=row["reason"],
        restart=row["restart"],
        counters=DatumCounters(row["processed"], row["skipped"], row["total"], row["failed"], row["recovered"]),
        stats=DatumStats(**json.loads(row["stats"])),
        created=row["created"],
        started=row["started"],
        finished=row["finished"],
        spec=details,
    )
