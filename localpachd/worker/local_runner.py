"""The worker room's service: leases GPUs, gives each datum set a directory and a workplace, and has it processed.

Knows neither jobs nor backends.
"""

import logging
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from localpachd.disk import Disk
from localpachd.errors import PachError
from localpachd.worker.batch_session import BatchSession
from localpachd.worker.commands import CommandProcess, describe_end
from localpachd.worker.datum_set_run import DatumSetRun
from localpachd.worker.datum_set_watch import CancellationError, DatumSetWatch
from localpachd.worker.environment import EnvironmentProblem, datum_variables, task_variables
from localpachd.worker.gpu_pool import GpuPool
from localpachd.worker.layout.pfs_layout import PlacementError
from localpachd.worker.layout.tree_removal import remove
from localpachd.worker.service_network import PortUnavailable
from localpachd.worker.tasks import (
    BatchServer,
    CancelToken,
    DatumOutcome,
    DatumResult,
    DatumWork,
    ImageStatus,
    LogLine,
    LogSink,
    ResultSink,
    ServicePorts,
    Task,
)
from localpachd.worker.warm_workers import WarmWorkers, Worker, remove_worker_directory
from localpachd.worker.workplace import NotReusable, Workplace, WorkplaceBackend

_log = logging.getLogger(__name__)


class LocalRunner:
    """Runs datum sets at the workplaces of one backend. Thread-safe: each call of `run_set` is one set on one worker.

    `scratch` is a directory that nobody else uses; it is emptied here, as far as that is possible. `disk` is the one
    that it is on, `most_warm` how many workers may be kept between their datum sets.
    """

    def __init__(
        self,
        scratch: Path,
        gpus: GpuPool,
        server: BatchServer,
        backend: WorkplaceBackend,
        disk: Disk | None = None,
        most_warm: int = 16,
    ) -> None:
        self._disk = disk or Disk(scratch)
        scratch.mkdir(parents=True, exist_ok=True)
        for left in scratch.iterdir():  # by a server that was killed
            try:
                remove(left)
            except OSError as failure:  # a new worker gets a directory of another name
                _log.warning("cannot delete %s: %s. Delete %s yourself", failure.filename, failure.strerror, left)
        self._scratch = scratch.resolve()
        self._server = server
        self._gpus = gpus
        self._backend = backend
        self._warm = WarmWorkers(backend.state, most_warm)
        self._lock = threading.Lock()
        self._told: set[str] = set()
        self._busy = 0
        self._refusing: int | None = None

    @property
    def workers(self) -> int:
        return self._busy

    @property
    def warm(self) -> int:
        """The number of workers that wait for their next datum set."""
        return len(self._warm)

    def images(self, wanted: Collection[str]) -> Mapping[str, ImageStatus]:
        """The status of the images that pipelines with work want now; those that it does not name are ready. Does not
        wait: missing images are fetched in the background, for as long as they are wanted."""
        return self._backend.images(wanted)

    def run_set(
        self, task: Task, datums: Sequence[DatumWork], done: ResultSink, log: LogSink, cancel: CancelToken
    ) -> None:
        """Processes `datums` in order, calling `done` for each as it ends; returns early, silently, when cancelled.

        `done` and `log` are called from threads other than the caller's, too, and `done` for one datum after the other.
        An error of a datum, or of the command, becomes a FAILED result. Raises only what `done` and `log` raise, and
        failures that concern the whole machine. Unless they are kept, processes belong to the calling thread: they end
        if it ends.
        """
        self._tell(task, log)
        try:
            with (
                DatumSetWatch(cancel, self._gpus.notify) as watch,
                self._leased(task, watch, log) as devices,
            ):
                self._run(task, datums, done, log, watch, devices)
        except CancellationError:
            return

    def run_once(
        self, task: Task, work: DatumWork, ports: ServicePorts | None, log: LogSink, cancel: CancelToken
    ) -> str:
        """Runs the task's command once, until it ends, with `work` in its `/pfs`: a spout or, with `ports`, a service.
        Returns how it ended; "" when it was cancelled. `log` is as in `run_set`; raises only what that raises."""
        self._tell(task, log)
        try:
            with (
                DatumSetWatch(cancel, self._gpus.notify) as watch,
                self._leased(task, watch, log) as devices,
                self._directory(log) as directory,
                closing(self._backend.open(directory, task, devices, ports)) as workplace,
            ):
                if workplace.statement:
                    log(LogLine("", False, workplace.statement))
                return _run_single(task, workplace, watch, log, work)
        except CancellationError:
            return ""
        except (EnvironmentProblem, PortUnavailable, OSError) as problem:
            return str(problem)

    def keep(self, versions: Collection[str]) -> None:
        """Ends kept processes of all versions of pipelines but those with these spec commits, and keeps no others from
        now on. Does not wait."""
        self._warm.keep_versions(versions)

    def look(self) -> None:
        """Ends kept processes that have read what has changed since: secrets or code."""
        self._warm.look()

    def close(self) -> None:
        """Releases the machine's resources; call it when no set is running any more."""
        self._warm.close()
        if self._refusing is not None:
            self._server.close(self._refusing)
        self._backend.close()

    def _run(
        self,
        task: Task,
        datums: Sequence[DatumWork],
        done: ResultSink,
        log: LogSink,
        watch: DatumSetWatch,
        devices: tuple[str, ...],
    ) -> None:
        def note(text: str) -> None:
            log(LogLine("", False, text))

        worker = self._kept(task, note)
        directory = self._made() if worker is None else worker.directory
        try:
            worker = worker or self._opened(task, directory, devices, log)
        except (EnvironmentProblem, OSError) as problem:
            note(str(problem))
            for work in datums:
                watch.check()
                done(DatumResult(work.id, DatumOutcome.FAILED, str(problem)))
            return
        finally:
            if worker is None:
                remove_worker_directory(directory, note)
        watch.share(worker.session.condition)
        kept = False
        try:
            processed = DatumSetRun(worker.task, worker.workplace, worker.session, watch, log).run(datums, done)
            kept = processed and not devices and self._warm.keep(worker, note)
        finally:
            if not kept:
                worker.close(note)

    def _kept(self, task: Task, note: Callable[[str], None]) -> Worker | None:
        """The worker of this task that was kept from an earlier datum set, if there is one."""
        found = self._warm.take(task)
        if found is None:
            return None
        worker, seconds = found
        note(f"user code has waited for {seconds:.0f} s, and goes on with this datum set")
        return worker

    def _opened(self, task: Task, directory: Path, devices: tuple[str, ...], log: LogSink) -> Worker:
        """A new worker. Raises EnvironmentProblem and OSError."""
        state = "" if devices else self._state(task, log)
        if not task.batching:
            task = replace(task, refusing_port=self._refusing_port())
        with self._disk.writing():
            workplace = self._backend.open(directory, task, devices)
        start = self._warm.start if state else _here
        session = BatchSession(task, workplace, self._server, threading.Condition(), start)
        return Worker(task, directory, workplace, session, state)

    def _state(self, task: Task, log: LogSink) -> str:
        """The state of what the task's processes read once; "" if they are not to be kept."""
        if task.warm is None or not task.batching:
            return ""
        try:
            return self._backend.state(task)
        except NotReusable as reason:
            self._say_once(task, [f"user code is not kept for the next datum set: {reason}"], log)
            return ""

    def _refusing_port(self) -> int:
        """The port where commands that are not batched get an error when they call NextDatum."""
        with self._lock:
            if self._refusing is None:
                self._refusing = self._server.open(_refuse)
            return self._refusing

    @contextmanager
    def _leased(self, task: Task, watch: DatumSetWatch, log: LogSink) -> Iterator[tuple[str, ...]]:
        """The GPUs of a worker, which is counted while it has them."""

        def wait(holders: str) -> None:
            log(LogLine("", False, f"waiting for {task.gpus} of this machine's GPUs ({holders})"))

        with self._gpus.lease(task.pod.pipeline, task.gpus, watch.check, wait) as devices:
            with self._lock:
                self._busy += 1
            try:
                yield devices
            finally:
                with self._lock:
                    self._busy -= 1

    @contextmanager
    def _directory(self, log: LogSink) -> Iterator[Path]:
        """A directory for one worker, removed at the end."""
        directory = self._made()
        try:
            yield directory
        finally:
            remove_worker_directory(directory, lambda text: log(LogLine("", False, text)))

    def _made(self) -> Path:
        """A new directory for a worker."""
        with self._disk.writing():
            directory = Path(tempfile.mkdtemp(dir=self._scratch, prefix="worker-"))
        directory.chmod(0o711)  # processes of another user must be able to reach their files
        return directory

    def _tell(self, task: Task, log: LogSink) -> None:
        """Writes into the pipeline's log, once, how this machine falls short of a cluster."""
        shortcomings = self._backend.shortcomings()
        if task.gpus > self._gpus.leased(task.gpus):
            shortcomings.append(
                f"{task.gpus} GPUs are asked for and this machine has {len(self._gpus.devices)}: running on the CPU"
            )
        self._say_once(task, shortcomings, log)

    def _say_once(self, task: Task, texts: Sequence[str], log: LogSink) -> None:
        """Writes those texts into the pipeline's log that it has not had yet."""
        holder = task.pod.pipeline
        with self._lock:
            new = [text for text in texts if f"{holder}: {text}" not in self._told]
            self._told.update(f"{holder}: {text}" for text in new)
        for text in new:
            log(LogLine("", False, text))


def _refuse(_: str) -> None:
    raise PachError("datum batching not enabled")


def _here(start: Callable[[], CommandProcess]) -> CommandProcess:
    return start()


def _run_single(task: Task, workplace: Workplace, watch: DatumSetWatch, log: LogSink, work: DatumWork) -> str:
    """Runs the command of a service or a spout once at a workplace, in this thread, with `work` in its `/pfs`; returns
    how it ended. Raises CancellationError."""

    def note(text: str) -> None:
        log(LogLine("", False, text))

    watch.begin(work.id)
    layout = workplace.layout
    pipes = layout.lazy_pipes(workplace.stores.pipes, note, watch.end)
    try:
        variables = datum_variables(work, layout.shown)
        layout.place(work, {**task_variables(task), **variables}, pipes, watch.check)
        note("beginning to run user code")
        begun = time.monotonic()
        process = workplace.start(
            task.cmd, task.stdin, variables, lambda text: log(LogLine("", True, text)), watch.notify
        )
        try:
            ended = watch.wait(lambda: process.ended) or describe_end(process)
        finally:
            process.stop()
        note(f"user code ended after {time.monotonic() - begun:.3f}s: {ended}")
        return ended
    except (PlacementError, EnvironmentProblem) as problem:
        return str(problem)
    finally:
        watch.finish()
        pipes.close()
