"""The worker room's service: leases GPUs, gives each datum set a directory and a workplace, and has it processed.

Knows neither jobs nor backends.
"""

import logging
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path

from localpachd.disk import Disk
from localpachd.errors import PachError
from localpachd.worker.attempts import DatumSet
from localpachd.worker.environment import EnvironmentProblem
from localpachd.worker.gpu_pool import GpuPool
from localpachd.worker.layout.removal import remove
from localpachd.worker.network import PortTaken
from localpachd.worker.single_run import SingleRun
from localpachd.worker.tasks import (
    BatchServer,
    CancelToken,
    DatumResult,
    DatumWork,
    ImageStatus,
    LogLine,
    Outcome,
    Ports,
    Task,
)
from localpachd.worker.watch import Cancelled, Watch
from localpachd.worker.workplace import Backend

_log = logging.getLogger(__name__)


class LocalRunner:
    """Implements `tasks.Runner` with the workplaces of one backend. Thread-safe: each call of `run_set` is one worker.

    `scratch` is a directory that nobody else uses; it is emptied here, as far as that is possible. `disk` is the one
    that it is on.
    """

    def __init__(
        self, scratch: Path, gpus: GpuPool, server: BatchServer, backend: Backend, disk: Disk | None = None
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
        self._lock = threading.Lock()
        self._told: set[str] = set()
        self._busy = 0
        self._refusing: int | None = None

    @property
    def workers(self) -> int:
        """The number of workers that run."""
        return self._busy

    def images(self, wanted: Collection[str]) -> Mapping[str, ImageStatus]:
        """As `tasks.Runner` says."""
        return self._backend.images(wanted)

    def run_set(
        self,
        task: Task,
        datums: Sequence[DatumWork],
        done: Callable[[DatumResult], None],
        log: Callable[[LogLine], None],
        cancel: CancelToken,
    ) -> None:
        """As `tasks.Runner` says. The processes belong to the calling thread: they end if it ends."""
        self._tell(task, log)
        try:
            with (
                Watch(cancel, self._gpus.notify) as watch,
                self._leased(task, watch, log) as devices,
                self._directory(log) as directory,
            ):
                self._run(task, datums, done, log, watch, devices, directory)
        except Cancelled:
            return

    def run_once(
        self, task: Task, work: DatumWork, ports: Ports | None, log: Callable[[LogLine], None], cancel: CancelToken
    ) -> str:
        """As `tasks.Runner` says."""
        self._tell(task, log)
        try:
            with (
                Watch(cancel, self._gpus.notify) as watch,
                self._leased(task, watch, log) as devices,
                self._directory(log) as directory,
                closing(self._backend.open(directory, task, devices, ports)) as workplace,
            ):
                if workplace.statement:
                    log(LogLine("", False, workplace.statement))
                return SingleRun(task, workplace, watch, log).run(work)
        except Cancelled:
            return ""
        except (EnvironmentProblem, PortTaken, OSError) as problem:
            return str(problem)

    def close(self) -> None:
        """Releases the machine's resources; call it when no set is running any more."""
        if self._refusing is not None:
            self._server.close(self._refusing)
        self._backend.close()

    def _run(
        self,
        task: Task,
        datums: Sequence[DatumWork],
        done: Callable[[DatumResult], None],
        log: Callable[[LogLine], None],
        watch: Watch,
        devices: tuple[str, ...],
        directory: Path,
    ) -> None:
        if not task.batching:
            task = replace(task, refusing_port=self._refusing_port())
        try:
            with self._disk.writing():
                workplace = self._backend.open(directory, task, devices)
        except (EnvironmentProblem, OSError) as problem:
            log(LogLine("", False, str(problem)))
            for work in datums:
                watch.check()
                done(DatumResult(work.id, Outcome.FAILED, str(problem)))
            return
        with closing(workplace):
            DatumSet(task, workplace, self._server, watch, log).run(datums, done)

    def _refusing_port(self) -> int:
        """The port where commands that are not batched get an error when they call NextDatum."""
        with self._lock:
            if self._refusing is None:
                self._refusing = self._server.open(_refuse)
            return self._refusing

    def _leased(
        self, task: Task, watch: Watch, log: Callable[[LogLine], None]
    ) -> AbstractContextManager[tuple[str, ...]]:
        def wait(holders: str) -> None:
            log(LogLine("", False, f"waiting for {task.gpus} of this machine's GPUs ({holders})"))

        return self._gpus.lease(task.pod.pipeline, task.gpus, watch.check, wait)

    @contextmanager
    def _directory(self, log: Callable[[LogLine], None]) -> Iterator[Path]:
        """A directory for one worker, removed at the end."""
        with self._disk.writing():
            directory = Path(tempfile.mkdtemp(dir=self._scratch, prefix="worker-"))
        directory.chmod(0o711)  # processes of another user must be able to reach their files
        with self._lock:
            self._busy += 1
        try:
            yield directory
        finally:
            with self._lock:
                self._busy -= 1
            try:
                remove(directory)
            except OSError as failure:  # the next start tries again
                log(LogLine("", False, f"cannot remove the worker's directory: {failure}"))

    def _tell(self, task: Task, log: Callable[[LogLine], None]) -> None:
        """Writes into the pipeline's log, once, how this machine falls short of a cluster."""
        holder = task.pod.pipeline
        shortcomings = self._backend.shortcomings()
        if task.gpus > self._gpus.leased(task.gpus):
            shortcomings.append(
                f"{task.gpus} GPUs are asked for and this machine has {len(self._gpus.devices)}: running on the CPU"
            )
        with self._lock:
            new = [text for text in shortcomings if f"{holder}: {text}" not in self._told]
            self._told.update(f"{holder}: {text}" for text in new)
        for text in new:
            log(LogLine("", False, text))


def _refuse(_: str) -> None:
    raise PachError("datum batching not enabled")
