"""The life of pipelines: a row for each version, with repos and branches. Runs nothing."""

import sqlite3
from collections.abc import Collection, Mapping
from typing import Any

from localpachd.errors import AlreadyExists, NotFound, PachError, prefixed
from localpachd.pfs import branches, commits, metadata, names, repos
from localpachd.pfs.pfs_entities import Branch, Commit, Repo
from localpachd.pfs.transaction import Transaction
from localpachd.pps import job_rows, jobs, log_rows, pipeline_rows
from localpachd.pps.pps_entities import JobStates, LogLevel, Pipeline, PipelineInfo, PipelineState, SpecText
from localpachd.pps.specs import inputs, spec
from speclang.names import DEFAULT_PROJECT

ALL_VERSIONS = -1


def create(txn: Transaction, request: Mapping[str, Any], written: SpecText) -> None:
    """Creates the pipeline of a CreatePipelineRequest (protojson, snake_case names) or, if its `update` is set, the
    next version. `written` is stored with it."""
    pipeline = _asked(request)
    old = pipeline_rows.newest(txn.conn, pipeline)
    if old is not None and not request.get("update"):
        raise AlreadyExists(f'pipeline "{pipeline}" already exists')
    new = spec.parse(request, txn.now, spec.from_json(old["spec"]) if old else None)
    _prepare_inputs(txn, pipeline, new)
    if old is None:
        _create_repos(txn, pipeline)
    marker = commits.start(txn, pipeline.spec_branch)
    commits.finish(txn, marker)
    stopped = bool(old and old["stopped"])
    txn.conn.execute(
        "INSERT INTO pipelines (project, name, version, state, stopped, spec, user_spec, effective_spec, spec_commit, "
        "created) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            pipeline.project,
            pipeline.name,
            old["version"] + 1 if old else 1,
            PipelineState.STARTING,
            stopped,
            new.to_json(),
            written.user,
            written.effective,
            marker.commit.id,
            txn.now,
        ),
    )
    txn.changed.add(pipeline)
    if old is not None:
        jobs.stop_all(txn, pipeline, "all jobs killed because pipeline was updated")
    with prefixed("could not create/update output branch"):
        _follow_inputs(txn, pipeline, new, stopped)
    with prefixed("could not create/update trigger branch"):
        _set_triggers(txn, new)


def rerun(txn: Transaction, pipeline: Pipeline, reprocess: bool = False) -> None:
    """Creates a next version of a pipeline that equals the last one; that makes a new job."""
    row = pipeline_rows.version(txn.conn, pipeline)
    request = {**spec.from_json(row["spec"]).raw, "update": True, "reprocess": reprocess}
    create(txn, request, SpecText(row["user_spec"], row["effective_spec"]))


def start(txn: Transaction, pipeline: Pipeline) -> None:
    """Starts a stopped pipeline: its output follows the inputs again. Commits from the meantime make one job."""
    row = pipeline_rows.version(txn.conn, pipeline)
    _follow_inputs(txn, pipeline, spec.from_json(row["spec"]), stopped=False)
    txn.conn.execute("UPDATE pipelines SET stopped = 0 WHERE seq = ?", (row["seq"],))
    txn.changed.add(pipeline)


def stop(txn: Transaction, pipeline: Pipeline, must_exist: bool = False) -> None:
    """Stops a pipeline: its output follows nothing, and its jobs are killed. An unknown one is ignored, or NotFound
    with `must_exist`."""
    row = pipeline_rows.version(txn.conn, pipeline) if must_exist else pipeline_rows.newest(txn.conn, pipeline)
    if row is not None:
        _follow_inputs(txn, pipeline, spec.from_json(row["spec"]), stopped=True)
        txn.conn.execute("UPDATE pipelines SET stopped = 1 WHERE seq = ?", (row["seq"],))
        txn.changed.add(pipeline)
    jobs.stop_all(txn, pipeline, "all jobs killed because pipeline was stopped")


def delete(txn: Transaction, pipeline: Pipeline, force: bool = False, keep_repo: bool = False) -> None:
    """Deletes a pipeline with all its versions, jobs, logs and repos. An unknown one is ignored.

    With `keep_repo` the output repo stays as an ordinary one. Branches downstream of the output forbid it unless
    `force`; then they only lose that provenance.
    """
    if pipeline_rows.newest(txn.conn, pipeline) is None:
        return
    ticks = _cron_repos(spec.from_json(pipeline_rows.version(txn.conn, pipeline)["spec"]))
    stop(txn, pipeline)
    for table, column in (("jobs", "pipeline"), ("logs", "pipeline"), ("pipelines", "name")):
        txn.conn.execute(f"DELETE FROM {table} WHERE project = ? AND {column} = ?", (pipeline.project, pipeline.name))
    txn.changed.update((pipeline, JobStates(pipeline)))
    doomed = (pipeline.spec_repo, pipeline.meta_repo) if keep_repo else (pipeline.repo,)
    for repo in (*doomed, *ticks):
        repos.delete(txn, repo, force)


def downstream_first(conn: sqlite3.Connection, found: Collection[Pipeline]) -> list[Pipeline]:
    """Pipelines in an order in which each comes before those that it reads from."""
    specs = {each: spec.from_json(pipeline_rows.version(conn, each)["spec"]) for each in found}
    output = {Branch(each.repo, of_it.output_branch): each for each, of_it in specs.items()}
    return [output[branch] for branch in branches.downstream_first(conn, list(output))]


def inspect(conn: sqlite3.Connection, pipeline: Pipeline) -> PipelineInfo:
    """A pipeline, or an earlier version of it if its name has ancestry (`edges^`, `edges~2`)."""
    name, ancestors = names.parse_ancestry(pipeline.name)
    if ancestors < 0:
        raise PachError("cannot inspect future pipelines")
    plain = Pipeline(pipeline.project, name)
    return _info(conn, pipeline_rows.version(conn, plain, ancestors))


def listed(
    conn: sqlite3.Connection,
    pipeline: Pipeline | None = None,
    history: int = 0,
    projects: Collection[str] = (),
    commit_set: str = "",
) -> list[PipelineInfo]:
    """Pipelines, newest stored version first; `history` is the number of older versions of each to add, or
    ALL_VERSIONS. With `commit_set`, the versions at that commit set."""
    if pipeline is not None and not pipeline_rows.exists(conn, pipeline):
        raise NotFound(f'pipeline "{pipeline}" not found')
    newest: dict[Pipeline, int] = {}
    found = []
    for row in conn.execute("SELECT * FROM pipelines ORDER BY seq DESC").fetchall():
        each = Pipeline(row["project"], row["name"])
        latest = newest.setdefault(each, row["version"])
        if pipeline not in (None, each) or (projects and each.project not in projects):
            continue
        if history != ALL_VERSIONS and latest - row["version"] > history:
            continue
        shown = pipeline_rows.version_at(conn, each, commit_set) if commit_set else row
        if shown is not None:
            found.append(_info(conn, shown, bool(commit_set)))
    return found


def set_state(
    txn: Transaction, pipeline: Pipeline, version: int, state: PipelineState, reason: str, stopped: bool
) -> None:
    """Sets the state of one version of a pipeline, unless that was stopped or started since: `stopped` must match."""
    done = txn.conn.execute(
        "UPDATE pipelines SET state = ?, reason = ? WHERE project = ? AND name = ? AND version = ? AND stopped = ?",
        (state, reason, pipeline.project, pipeline.name, version, stopped),
    )
    txn.changed.add(pipeline)
    if done.rowcount:
        level = LogLevel.ERROR if state in (PipelineState.CRASHING, PipelineState.FAILURE) else LogLevel.INFO
        log_rows.add_server_line(txn, pipeline, f"{state}: {reason}" if reason else state, level)


def _asked(request: Mapping[str, Any]) -> Pipeline:
    named = request.get("pipeline") or {}
    project = (named.get("project") or {}).get("name") or DEFAULT_PROJECT
    return Pipeline(project, named.get("name") or "")


def _info(conn: sqlite3.Connection, row: sqlite3.Row, then: bool = False) -> PipelineInfo:
    """The entity of a row; `then` selects the last job of its time instead of the newest."""
    pipeline = Pipeline(row["project"], row["name"])
    return PipelineInfo(
        pipeline=pipeline,
        version=row["version"],
        spec_commit=Commit(pipeline.spec_repo, row["spec_commit"], "master"),
        stopped=bool(row["stopped"]),
        state=PipelineState(row["state"]),
        reason=row["reason"],
        last_job_state=job_rows.last_state(conn, pipeline, row["version"] if then else None),
        spec=spec.from_json(row["spec"]),
        written=SpecText(row["user_spec"], row["effective_spec"]),
        created=row["created"],
        metadata=metadata.read_metadata(conn, "pipeline", str(pipeline)),
    )


def _create_repos(txn: Transaction, pipeline: Pipeline) -> None:
    """Creates the repos of a new pipeline's output and of its versions."""
    try:
        repos.create(txn, pipeline.repo, f"Output repo for pipeline {pipeline}.")
    except AlreadyExists:
        # Pachyderm's text and code: a name taken by a plain repo is not reported as ALREADY_EXISTS.
        raise PachError(
            f'pipeline "{pipeline.name}" cannot be created because a repo with the same name already exists'
        ) from None
    except PachError as error:
        raise type(error)(f"error creating output repo for {pipeline.name}: {error}") from error
    repos.create(txn, pipeline.spec_repo, f"Spec repo for pipeline {pipeline}.", update=True)


def _prepare_inputs(txn: Transaction, pipeline: Pipeline, details: spec.PipelineSpec) -> None:
    """Creates the repos of ticks; every other input repo must exist."""
    for repo in _cron_repos(details):
        if not repos.exists(txn.conn, repo):
            repos.create(txn, repo, f"Cron tick repo for pipeline {pipeline}.")
    for branch in inputs.branches(details.input):
        repos.inspect(txn.conn, branch.repo)


def _cron_repos(details: spec.PipelineSpec) -> list[Repo]:
    """The repos of a pipeline's ticks."""
    leaves = inputs.leaves(details.input)
    return [Repo(leaf.project, leaf.repo) for leaf in leaves if isinstance(leaf, inputs.CronInput)]


def _set_triggers(txn: Transaction, details: spec.PipelineSpec) -> None:
    """Sets the triggers of input branches; their heads stay until a trigger fires."""
    for leaf in inputs.leaves(details.input):
        if isinstance(leaf, inputs.PfsInput) and leaf.trigger is not None:
            branch = Branch(Repo(leaf.project, leaf.repo, leaf.repo_type), leaf.branch)
            branches.create(txn, branch, head=branches.inspect(txn.conn, branch).head, trigger=leaf.trigger)


def _follow_inputs(txn: Transaction, pipeline: Pipeline, details: spec.PipelineSpec, stopped: bool) -> None:
    """Sets the provenance of the output and the meta branch to the inputs and the spec branch or, if stopped, to
    nothing. Only a transform has a meta branch."""
    upstream: tuple[Branch, ...] = () if stopped else (*inputs.branches(details.input), pipeline.spec_branch)
    branches.create(txn, Branch(pipeline.repo, details.output_branch), provenance=upstream)
    if details.kind is not spec.PipelineKind.TRANSFORM:
        return
    if not repos.exists(txn.conn, pipeline.meta_repo):
        repos.create(txn, pipeline.meta_repo, f"Meta repo for pipeline {pipeline.name}")
    branches.create(txn, Branch(pipeline.meta_repo, details.output_branch), provenance=upstream)
