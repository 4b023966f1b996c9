"""The door of the pps room: each request is one atomic step or one snapshot here. Knows no gRPC."""

import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from localpachd.errors import NotFound, PachError
from localpachd.pfs import commit_sets, commits
from localpachd.pfs.entities import Commit
from localpachd.pfs.service import Pfs
from localpachd.pfs.transaction import Transaction
from localpachd.pps import datum_listing, jobs, logs, pipelines, secrets
from localpachd.pps.cron import CronScheduler
from localpachd.pps.datum_rerun import DatumRerun
from localpachd.pps.entities import (
    DatumInfo,
    Job,
    JobInfo,
    JobSetInfo,
    LogMessage,
    Pipeline,
    PipelineInfo,
    Written,
)
from localpachd.pps.logs import LogQuery
from localpachd.pps.scheduler import Scheduler
from localpachd.pps.server_log import ServerLog
from localpachd.pps.spout_run import Sidecars
from localpachd.worker.gpu_pool import GpuPool
from localpachd.worker.secrets import Secrets
from localpachd.worker.tasks import Runner


def always() -> bool:
    """For waits that nobody abandons."""
    return True


class Pps:
    """The pipelines of one server. Until `start`, they are only kept; afterwards they run.

    `server_port` is the port of the loopback where workers' processes find this server, 0 for none; `now` (ns since the
    epoch) is the clock that cron inputs go by, `sidecars` give spouts their door to this server. `gpus` may be asked
    who holds them.
    """

    def __init__(
        self,
        pfs: Pfs,
        runner: Runner,
        gpus: GpuPool,
        server_port: int,
        secrets: Secrets,
        sidecars: Sidecars,
        now: Callable[[], int] = time.time_ns,
    ) -> None:
        self._pfs = pfs
        self._secrets = secrets
        self._db = pfs.db
        self._runner = runner
        self._server_port = server_port
        self.gpus = gpus
        self._scheduler = Scheduler(pfs, runner, gpus, server_port, sidecars)
        self._cron = CronScheduler(pfs, now)
        self.server_log = ServerLog(pfs.changes)

    def start(self) -> None:
        """Goes on wherever the database says things were."""
        self._scheduler.start()
        self._cron.start()

    def stop(self) -> None:
        """Stops what runs, without ending it: `start` on the same database goes on with it."""
        self._cron.stop()
        self._scheduler.stop()

    def add_pipeline(self, txn: Transaction, request: Mapping[str, Any], written: Written) -> None:
        """Creates or updates a pipeline as a CreatePipelineRequest (protojson, snake_case names) asks for."""
        secrets.check(request, self._secrets)
        pipelines.create(txn, request, written)

    def rerun_pipeline(self, pipeline: Pipeline, reprocess: bool = False) -> None:
        """Runs a pipeline again on what it reads, skipping what it may unless `reprocess`: its next version is as its
        last. NotFound for an unknown one."""
        self._pfs.transact(lambda txn: pipelines.rerun(txn, pipeline, reprocess))

    def start_pipeline(self, pipeline: Pipeline) -> None:
        """Lets a stopped pipeline run again; NotFound for an unknown one."""
        self._pfs.transact(lambda txn: pipelines.start(txn, pipeline))

    def stop_pipeline(self, pipeline: Pipeline, must_exist: bool = False) -> None:
        """Stops a pipeline and its jobs; for an unknown one silent, or NotFound with `must_exist`."""
        self._pfs.transact(lambda txn: pipelines.stop(txn, pipeline, must_exist))

    def run_cron(self, pipeline: Pipeline) -> None:
        """Ticks every cron input of a pipeline now; PachError where it has none, NotFound for an unknown one."""
        self._cron.run_now(pipeline)

    def delete_pipeline(
        self, pipeline: Pipeline, force: bool = False, keep_repo: bool = False, must_exist: bool = False
    ) -> None:
        """Deletes a pipeline and, unless `keep_repo`, its output; for an unknown one silent, or NotFound with
        `must_exist`."""

        def step(txn: Transaction) -> None:
            try:
                pipelines.stop(txn, pipeline, must_exist)
            except NotFound as error:
                raise NotFound(f"error stopping pipeline {pipeline}: {error}") from error
            pipelines.delete(txn, pipeline, force, keep_repo)

        self._pfs.transact(step)

    def delete_pipelines(
        self, projects: Collection[str] | None = None, force: bool = False, keep_repo: bool = False
    ) -> list[Pipeline]:
        """Deletes the pipelines of these projects, of all when None; returns those deleted."""

        def step(txn: Transaction) -> list[Pipeline]:
            doomed = [info.pipeline for info in pipelines.listed(txn.conn) if projects is None or _in(info, projects)]
            for pipeline in pipelines.downstream_first(txn.conn, doomed):
                pipelines.delete(txn, pipeline, force, keep_repo)
            return doomed

        return self._pfs.transact(step)

    def inspect_pipeline(self, pipeline: Pipeline) -> PipelineInfo:
        """A pipeline; its name may hold ancestry (`edges^`)."""
        with self._db.read() as conn:
            return pipelines.inspect(conn, pipeline)

    def list_pipelines(
        self,
        pipeline: Pipeline | None = None,
        history: int = 0,
        projects: Collection[str] = (),
        commit_set: str = "",
    ) -> list[PipelineInfo]:
        """Pipelines, newest stored version first; see `pipelines.listed`."""
        try:
            with self._db.read() as conn:
                return pipelines.listed(conn, pipeline, history, projects, commit_set)
        except NotFound as error:
            raise NotFound(f"could not list pipeline info: {error}") from error

    def inspect_job(self, job: Job, wait: bool = False, active: Callable[[], bool] = always) -> JobInfo:
        """A job; with `wait` once it is over, or as it stands when `active` turns false. NotFound for no such job."""
        info = self._job(job)
        if wait:
            info = self._pfs.changes.wait_for(lambda: self._over(job), active, {job.pipeline}) or info
        return info

    def list_jobs(
        self,
        pipeline: Pipeline | None = None,
        history: int = 0,
        input_commits: Sequence[Commit] = (),
        projects: Collection[str] = (),
        reverse: bool = False,
    ) -> Iterator[JobInfo]:
        """Jobs of the current versions of pipelines and of `history` earlier ones, newest first.

        `input_commits` keeps those of commit sets in which every one of them is read. Streams.
        """
        with self._db.read() as conn:
            shown = {(info.pipeline, info.version) for info in pipelines.listed(conn, pipeline, history, projects)}
            wanted = {commits.resolve(conn, each).commit for each in input_commits}
            read = lru_cache(maxsize=64)(lambda commit_set: _read_by_set(conn, commit_set))
            for info in jobs.listed(conn, pipeline, shown, reverse):
                if not wanted or wanted <= read(info.job.id):
                    yield self._with_status(info)

    def subscribe_jobs(self, pipeline: Pipeline, active: Callable[[], bool] = always) -> Iterator[JobInfo]:
        """Each unfinished job of a pipeline once, oldest first, as they come, until `active` turns false."""
        sent: set[str] = set()
        changes = self._pfs.changes
        while (fresh := changes.wait_for(lambda: self._unseen(pipeline, sent), active, {pipeline})) is not None:
            for info in fresh:
                sent.add(info.job.id)
                yield info

    def inspect_job_set(
        self, commit_set: str, wait: bool = False, active: Callable[[], bool] = always
    ) -> Iterator[JobInfo]:
        """The jobs of a commit set, upstream first; with `wait`, each when the commits up to its own are finished."""
        with self._db.read() as conn:
            try:
                order = [info.commit for info in commit_sets.inspect(conn, commit_set)]
            except NotFound:
                # The commits are gone; their jobs may still be known.
                order = [info.output_commit for info in jobs.of_set(conn, commit_set)]
                wait = False
        for commit in order:
            if wait:
                self._pfs.changes.wait_for(partial(self._finished, commit), active, {commit.repo})
            job = jobs.job_of(commit)
            if job is not None and commit.id == commit_set and (info := self._find(job)) is not None:
                yield info

    def list_job_sets(self, projects: Collection[str] = ()) -> Iterator[JobSetInfo]:
        """Job sets, newest first; with `projects`, only what belongs to them."""
        with self._db.read() as conn:
            found = jobs.sets(conn)
        for each in found:
            chosen = tuple(info for info in self.inspect_job_set(each) if not projects or _in(info.job, projects))
            if chosen:
                yield JobSetInfo(each, chosen)

    def delete_job(self, job: Job) -> None:
        """Kills and forgets a job."""
        self._pfs.transact(lambda txn: jobs.delete(txn, job))

    def list_datums(self, job: Job, after: str = "") -> Iterator[DatumInfo]:
        """The datums of a job by id, those past `after`, as its meta commit shows them so far. Streams."""
        return datum_listing.of_job(self._pfs, job, after)

    def list_input_datums(self, raw: Mapping[str, Any]) -> Iterator[DatumInfo]:
        """The datums, by id, that a pipeline with this input (protojson, snake_case names) would have now."""
        return datum_listing.of_input(self._pfs, raw)

    def inspect_datum(self, job: Job, identity: str) -> DatumInfo:
        """One datum of a job, with where its files lie; PachError where the job has none of that id."""
        return datum_listing.one(self._pfs, job, identity)

    def rerun_datum(self, job: Job, identity: str) -> DatumRerun:
        """One datum of a job, ready to be run again alone; PachError where the job has none of that id."""
        return DatumRerun(self._pfs, self._runner, self._server_port, job, identity)

    def restart_datum(self, job: Job, data_filters: Sequence[str]) -> None:
        """Ends the present attempt of the job's running datums whose inputs match every filter (path or hash).

        Raises PachError where none does, or where the job is not in hand.
        """
        self._job(job)
        run = self._scheduler.run_of(job)
        if run is None or not run.restart_datums(data_filters):
            wanted = " ".join(data_filters)
            raise PachError(f"datum matching filter [{wanted}] could not be found for job ID {job.id}")

    def logs(self, query: LogQuery, active: Callable[[], bool] = always) -> Iterator[LogMessage]:
        """Log lines, oldest first; see `logs.read`."""
        return logs.read(self._db, self._pfs.changes, self.server_log, query, active)

    def _job(self, job: Job) -> JobInfo:
        with self._db.read() as conn:
            return self._with_status(jobs.inspect(conn, job))

    def _find(self, job: Job) -> JobInfo | None:
        try:
            return self._job(job)
        except NotFound:
            return None

    def _over(self, job: Job) -> JobInfo | None:
        info = self._find(job)
        if info is None:
            raise PachError(f"job {job.id} was deleted")
        return info if info.state.terminal else None

    def _unseen(self, pipeline: Pipeline, sent: Collection[str]) -> list[JobInfo] | None:
        with self._db.read() as conn:
            waiting = [job for job, _, _ in jobs.unfinished(conn, [pipeline]) if job.id not in sent]
        return [info for job in waiting if (info := self._find(job)) is not None] or None

    def _finished(self, commit: Commit) -> bool | None:
        with self._db.read() as conn:
            info = commits.find(conn, commit.repo, commit.id)
        return True if info is None or info.finished is not None else None

    def _with_status(self, info: JobInfo) -> JobInfo:
        run = self._scheduler.run_of(info.job)
        return replace(info, worker_status=run.status) if run is not None else info


def _in(info: PipelineInfo | Job, projects: Collection[str]) -> bool:
    return info.pipeline.project in projects


def _read_by_set(conn: sqlite3.Connection, commit_set: str) -> set[Commit]:
    return {above for info in commit_sets.members(conn, commit_set) for above in info.provenance}
