"""The rows of pipelines' versions: the newest, an earlier one, that of a commit set. Changes nothing."""

import sqlite3

from localpachd.errors import NotFound, PachError
from localpachd.pfs import commits
from localpachd.pfs.pfs_entities import Commit
from localpachd.pps.pps_entities import Pipeline


def exists(conn: sqlite3.Connection, pipeline: Pipeline) -> bool:
    found = conn.execute(
        "SELECT 1 FROM pipelines WHERE project = ? AND name = ? LIMIT 1", (pipeline.project, pipeline.name)
    )
    return found.fetchone() is not None


def newest(conn: sqlite3.Connection, pipeline: Pipeline) -> sqlite3.Row | None:
    """The row of a pipeline's newest version; None for an unknown pipeline."""
    row: sqlite3.Row | None = conn.execute(
        "SELECT * FROM pipelines WHERE project = ? AND name = ? ORDER BY version DESC LIMIT 1",
        (pipeline.project, pipeline.name),
    ).fetchone()
    return row


def version(conn: sqlite3.Connection, pipeline: Pipeline, ancestors: int = 0) -> sqlite3.Row:
    """The row of the newest version, or of one so many versions before. Raises NotFound for an unknown pipeline, and
    PachError for a version before the first."""
    row = newest(conn, pipeline)
    if row is None:
        raise NotFound(
            f'pipeline was not inspected: couldn\'t find up to date spec for pipeline "{pipeline}": '
            f'branch "master" not found in repo {pipeline.spec_repo}'
        )
    wanted = row["version"] - ancestors
    if wanted < 1:
        raise PachError(
            f'pipeline "{pipeline}" has only {row["version"]} versions, not enough to find ancestor {ancestors}'
        )
    found: sqlite3.Row = conn.execute(
        "SELECT * FROM pipelines WHERE project = ? AND name = ? AND version = ?",
        (pipeline.project, pipeline.name, wanted),
    ).fetchone()
    return found


def version_at(conn: sqlite3.Connection, pipeline: Pipeline, commit_set: str) -> sqlite3.Row | None:
    """The row of the version at a commit set; None if there was no such pipeline."""
    try:
        marker = commits.resolve(conn, Commit(pipeline.spec_repo, commit_set))
    except NotFound:
        return None
    row: sqlite3.Row | None = conn.execute(
        "SELECT * FROM pipelines WHERE project = ? AND name = ? AND spec_commit = ?",
        (pipeline.project, pipeline.name, marker.commit.id),
    ).fetchone()
    return row


def incarnation(conn: sqlite3.Connection, pipeline: Pipeline) -> int | None:
    """A number that tells a pipeline from an earlier and a later one of its name; None while it is stopped, or if it
    does not exist."""
    row = newest(conn, pipeline)
    if row is None or row["stopped"]:
        return None
    found: int = conn.execute(
        "SELECT MIN(seq) FROM pipelines WHERE project = ? AND name = ?", (pipeline.project, pipeline.name)
    ).fetchone()[0]
    return found


def spec_commit(conn: sqlite3.Connection, pipeline: Pipeline, version: int) -> str:
    """The id of the commit that marks a version."""
    row = conn.execute(
        "SELECT spec_commit FROM pipelines WHERE project = ? AND name = ? AND version = ?",
        (pipeline.project, pipeline.name, version),
    ).fetchone()
    found: str = row["spec_commit"]
    return found
