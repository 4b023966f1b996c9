"""The run of one job: a thread that selects datums, has them processed and recorded, and ends the job."""

import contextlib
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from localpachd.errors import NoSpace, NotFound, OverQuota, PachError, TooMany
from localpachd.pfs.contents import UnfinishedCommit
from localpachd.pfs.files import egress
from localpachd.pfs.pfs_entities import Repo
from localpachd.pfs.pfs_service import PfsService
from localpachd.pps import datums, job_rows, jobs, log_rows
from localpachd.pps.pps_entities import JobInfo, JobState, LogLevel, WorkerStatus
from localpachd.pps.scheduling import datum_selection, datum_tasks, job_base
from localpachd.pps.scheduling.base_run import BaseRun
from localpachd.pps.scheduling.datum_selection import DatumSelection, NumberedDatum
from localpachd.pps.scheduling.job_base import JobBase
from localpachd.pps.scheduling.job_recorder import JobOver, JobRecorder
from localpachd.pps.scheduling.plan import unrunnable
from localpachd.pps.scheduling.worker_pool import WorkerPool
from localpachd.pps.specs import inputs
from localpachd.storage.filesets import FileSetRef
from localpachd.worker.environment import task_variables
from localpachd.worker.local_runner import LocalRunner
from localpachd.worker.tasks import DatumOutcome, WorkerPod

_FIRST_DELAY = 1.0
_LONGEST_DELAY = 60.0
_FOR_ROOM = 2.0
"""Seconds between two attempts on a disk that is full."""

TIMED_OUT = " jobtimed out"  # exactly Pachyderm's text

_log = logging.getLogger(__name__)


class _CommitsGone(Exception):
    """Commits of the job, or those that it reads, are not there: no attempt can change that."""

    def __init__(self, state: JobState, reason: str) -> None:
        super().__init__(reason)
        self.state = state
        self.reason = reason


class JobRun(BaseRun):
    """Runs one job that has been moved to RUNNING. `cancel` leaves the job's state as it is.

    After an error outside user code the job is tried again, without limit, after a growing pause.
    """

    def __init__(
        self, pfs: PfsService, runner: LocalRunner, info: JobInfo, pod: WorkerPod, over: Callable[[BaseRun], None]
    ) -> None:
        super().__init__("job", info.job, over)
        self._pfs = pfs
        self._runner = runner
        self._info = info
        self._task = replace(info.spec.task, pod=pod)
        self._pool: WorkerPool | None = None

    def restart_datums(self, filters: Sequence[str]) -> bool:
        pool = self._pool
        return pool is not None and pool.restart(filters)

    def cancel(self) -> None:
        super().cancel()
        self._pfs.changes.wake()

    @property
    def status(self) -> tuple[WorkerStatus, ...]:
        """The datum that each busy worker is processing."""
        pool = self._pool
        return pool.status if pool is not None else ()

    def _work(self) -> None:
        timer = self._timer()
        delay = _FIRST_DELAY
        again = False
        try:
            while not self._cancelled.is_set():
                try:
                    if again and not self._pfs.transact(lambda txn: jobs.begin(txn, self.job)):
                        return
                    with self._pfs.chunks.uses.one():
                        self._run()
                    return
                except JobOver:
                    return
                except _CommitsGone as error:
                    self._end(error.state, error.reason)
                    return
                except (OverQuota, TooMany) as error:
                    self._end(JobState.FAILURE, str(error))
                    return
                except NoSpace as error:  # nobody can write a log then; `JobReader` gives it as the job's reason
                    _log.warning("job %s waits: %s", self.job, error)
                    delay = _FOR_ROOM
                except Exception as error:  # an error of the machine, not of the datum
                    if self._ended():
                        return
                    _log.exception("job %s failed to run; trying again in %.0f s", self.job, delay)
                    self._complain(f"error processing job: {error}, retrying in {delay:.0f}s")
                again = True
                if self._cancelled.wait(delay):
                    return
                delay = min(2 * delay, _LONGEST_DELAY)
        except PachError:
            _log.exception("job %s cannot continue", self.job)
        finally:
            if timer is not None:
                timer.cancel()

    def _timer(self) -> threading.Timer | None:
        """Kills the job when its time is up. The time counts from the first start of the job."""
        limit = self._info.spec.job_timeout
        if limit is None:
            return None
        started = self._info.started if self._info.started is not None else time.time_ns()
        left = limit - (time.time_ns() - started) / 1e9
        timer = threading.Timer(max(0.0, left), self._end, (JobState.KILLED, TIMED_OUT))
        timer.daemon = True
        timer.start()
        return timer

    def _run(self) -> None:
        base, files, decision = self._decided()
        late = self._pfs.pace.late
        recorder = JobRecorder(self._pfs, self.job, files, task_variables(self._task), base.done.values())
        recorder.expect(0 if late else decision.skipped, decision.total)
        recorder.remove(base.strays)
        self._say(
            f"datums: {len(decision.parallel)} new, {len(decision.serial)} to be processed again, "
            f"{decision.skipped} skipped, {len(base.done)} done before a restart; {decision.total} in all"
        )
        earlier = [(each.index, key) for key, each in base.done.items() if each.outcome is DatumOutcome.FAILED]
        failed = [key for _, key in sorted(earlier) if key not in base.inherited]
        failed += self._phase(decision.parallel, recorder, files)
        if not failed:
            if late:
                recorder.expect(decision.skipped, decision.total)
            recorder.remove(decision.outdated)
            failed = [key for _, key in sorted(earlier)] + self._phase(decision.serial, recorder, files)
        if failed:
            self._end(JobState.FAILURE, f"datum {failed[0]} failed")
            return
        if self._info.spec.egress:
            self._egress(self._info.spec.egress)
        self._pfs.transact(lambda txn: jobs.succeed(txn, self.job))

    def _egress(self, url: str) -> None:
        """Copies the output to the URL, trying again without limit."""
        if not self._pfs.transact(lambda txn: jobs.begin_egress(txn, self.job)):
            raise JobOver
        delay = _FIRST_DELAY
        while not self._cancelled.is_set():
            try:
                size = egress.copy(self._pfs, self.job.output, url, self._check)
            except PachError as error:
                self._complain(f"error processing egress: {error}, retrying in {delay:.0f}s")
            else:
                self._say(f"{size} bytes copied to {url}")
                return
            self._cancelled.wait(delay)
            delay = min(2 * delay, _LONGEST_DELAY)
        raise JobOver

    def _check(self) -> None:
        if self._cancelled.is_set():
            raise JobOver

    def _decided(self) -> tuple[JobBase, Mapping[Repo, FileSetRef], DatumSelection]:
        try:
            return self._pfs.patiently(self._decide, lambda: not self._cancelled.is_set())
        except UnfinishedCommit:  # cancelled while waiting for the base
            raise JobOver from None

    def _decide(self) -> tuple[JobBase, Mapping[Repo, FileSetRef], DatumSelection]:
        tree = self._info.spec.input
        with self._pfs.db.read() as conn:
            lacking = job_base.missing_commit(conn, self.job)
            if lacking:
                raise _CommitsGone(JobState.KILLED, f"{lacking} commit removed")
            commits = job_base.inputs(conn, self.job)
            base = job_base.read(conn, self._pfs.chunks, self.job)
            leaves = tuple(inputs.leaves(tree))
            gone = [leaf.name for leaf in leaves if job_base.repo_of(leaf) not in commits]
            if gone:
                raise _CommitsGone(JobState.UNRUNNABLE, unrunnable(gone))
            find = job_base.finder(conn, lambda leaf: commits[job_base.repo_of(leaf)])
            decision = datum_selection.select_datums(
                datums.expand(tree, find, self._check) if tree is not None else (),
                base.inherited,
                base.done,
                self._info.spec.salt,
                skipping=not self._info.spec.reprocess_every_job,
            )
            # Not of all commits in the provenance: that of the specification may stand on one that is not finished.
            read = [commits[job_base.repo_of(leaf)] for leaf in leaves]
            return base, job_base.layers(conn, read), decision

    def _phase(
        self, todo: Sequence[NumberedDatum], recorder: JobRecorder, files: Mapping[Repo, FileSetRef]
    ) -> list[str]:
        """Processes all of these datums and returns the ids of those that failed, in the order of failing."""
        if not todo:
            return []
        count = min(self._info.spec.parallelism, len(todo))
        workers = [self.job.pipeline.worker(self._info.version, number) for number in range(count)]
        prepare = partial(datum_tasks.datum_work, job=self.job, files=files)
        self._pool = pool = self._hold(WorkerPool(self._runner, self._task, self.job, prepare, self._pfs.pace.late))
        sets = datum_selection.split_into_sets(todo, self._info.spec.datum_set, self._info.spec.parallelism)
        failed: list[str] = []
        trouble: Exception | None = None
        for batch in pool.batches(sets, workers):
            if trouble is not None:
                continue  # the pool is stopping; its remaining events are dropped
            try:
                recorder.record(batch.finished, batch.lines)
            except Exception as error:  # raised below, when all threads have ended
                trouble = error
                pool.cancel()
            failed += [each.result.id for each in batch.finished if each.result.state is DatumOutcome.FAILED]
        if trouble is not None:
            raise trouble
        if self._cancelled.is_set():
            raise JobOver
        return failed

    def _end(self, state: JobState, reason: str) -> None:
        with contextlib.suppress(NotFound):  # deleted in the meantime
            self._pfs.transact(lambda txn: jobs.fail(txn, self.job, state, reason))

    def _ended(self) -> bool:
        """Whether the job was deleted or ended elsewhere; False if the database cannot be read."""
        with contextlib.suppress(sqlite3.Error), self._pfs.db.read() as conn:
            state = job_rows.state(conn, self.job)
            return state is None or state.terminal
        return False

    def _complain(self, message: str) -> None:
        try:
            self._say(message, LogLevel.ERROR)
        except Exception:  # the error that stops the job may stop its log, too
            _log.exception("job %s cannot write its log", self.job)

    def _say(self, message: str, level: LogLevel = LogLevel.INFO) -> None:
        """Adds a line of the server to the pipeline's log."""
        self._pfs.transact(lambda txn: log_rows.add_server_line(txn, self.job, message, level))
