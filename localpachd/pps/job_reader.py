"""Jobs as clients read them: one, many, or as they come. Changes nothing."""

import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial

from localpachd.errors import NotFound, PachError
from localpachd.pfs import commit_sets, commits
from localpachd.pfs.changes import Steps
from localpachd.pfs.pfs_entities import Commit
from localpachd.pfs.pfs_service import PfsService
from localpachd.pps import job_rows, pipelines
from localpachd.pps.pps_entities import Job, JobInfo, JobSetInfo, JobStates, Pipeline
from localpachd.pps.scheduling.scheduler import Scheduler


class JobReader:
    """The jobs of one server, with the status of their workers."""

    def __init__(self, pfs: PfsService, scheduler: Scheduler) -> None:
        self._pfs = pfs
        self._scheduler = scheduler

    def inspect(self, job: Job) -> JobInfo:
        """A job. NotFound for an unknown one."""
        with self._pfs.db.read() as conn:
            return self._with_status(job_rows.inspect(conn, job))

    def await_end(self, job: Job, active: Callable[[], bool]) -> Steps[JobInfo]:
        """A job, once it is over or `active` turns false. NotFound for an unknown one."""
        info = self.inspect(job)
        ended = yield from self._pfs.changes.until(lambda: self._over(job), active, {JobStates(job.pipeline)})
        yield ended or info

    def list_all(
        self,
        pipeline: Pipeline | None = None,
        history: int = 0,
        input_commits: Sequence[Commit] = (),
        projects: Collection[str] = (),
        reverse: bool = False,
    ) -> Iterator[JobInfo]:
        """Jobs of the newest versions of pipelines and of `history` earlier ones, newest first.

        `input_commits` selects the jobs of commit sets that read all of these commits. Streams.
        """
        with self._pfs.db.read() as conn:
            shown = {(info.pipeline, info.version) for info in pipelines.listed(conn, pipeline, history, projects)}
            wanted = {commits.resolve(conn, each).commit for each in input_commits}
            read = lru_cache(maxsize=64)(lambda commit_set: _read_by_set(conn, commit_set))
            for info in job_rows.listed(conn, pipeline, shown, reverse):
                if not wanted or wanted <= read(info.job.id):
                    yield self._with_status(info)

    def subscribe(self, pipeline: Pipeline, active: Callable[[], bool]) -> Steps[JobInfo]:
        """Each unfinished job of a pipeline once, oldest first, then new ones until `active` turns false."""
        sent: set[str] = set()
        until = partial(self._pfs.changes.until, lambda: self._unseen(pipeline, sent), active, {JobStates(pipeline)})
        while (fresh := (yield from until())) is not None:
            for info in fresh:
                sent.add(info.job.id)
                yield info

    def inspect_set(self, commit_set: str, wait: bool, active: Callable[[], bool]) -> Steps[JobInfo]:
        """The jobs of a commit set, upstream first; with `wait`, each once the commits up to its own are finished."""
        with self._pfs.db.read() as conn:
            try:
                order = [info.commit for info in commit_sets.inspect(conn, commit_set)]
            except NotFound:
                # The commits were deleted; their jobs may still exist.
                order = [info.output_commit for info in job_rows.of_set(conn, commit_set)]
                wait = False
        for commit in order:
            if wait:
                yield from self._pfs.changes.until(partial(self._pfs.finished, commit), active, {commit.repo})
            job = job_rows.job_of(commit)
            if job is not None and commit.id == commit_set and (info := self._find(job)) is not None:
                yield info

    def list_sets(self, projects: Collection[str] = ()) -> Iterator[JobSetInfo]:
        """Job sets, newest first; with `projects`, only those projects' jobs."""
        with self._pfs.db.read() as conn:
            found = job_rows.sets(conn)
        for each in found:
            with self._pfs.db.read() as conn:
                jobs = job_rows.of_existing_commits(conn, each)
            chosen = tuple(
                self._with_status(info) for info in jobs if not projects or info.job.pipeline.project in projects
            )
            if chosen:
                yield JobSetInfo(each, chosen)

    def _find(self, job: Job) -> JobInfo | None:
        try:
            return self.inspect(job)
        except NotFound:
            return None

    def _over(self, job: Job) -> JobInfo | None:
        info = self._find(job)
        if info is None:
            raise PachError(f"job {job.id} was deleted")
        return info if info.state.terminal else None

    def _unseen(self, pipeline: Pipeline, sent: Collection[str]) -> list[JobInfo] | None:
        with self._pfs.db.read() as conn:
            waiting = [job for job, _, _ in job_rows.unfinished(conn, [pipeline]) if job.id not in sent]
        return [info for job in waiting if (info := self._find(job)) is not None] or None

    def _with_status(self, info: JobInfo) -> JobInfo:
        run = self._scheduler.run_of(info.job)
        if run is not None:
            info = replace(info, worker_status=run.status)
        if info.state.terminal or info.reason:
            return info
        full = self._pfs.chunks.disk.full
        return replace(info, reason=f"{full}, and the job continues by itself") if full else info


def _read_by_set(conn: sqlite3.Connection, commit_set: str) -> set[Commit]:
    return {above for info in commit_sets.members(conn, commit_set) for above in info.provenance}
