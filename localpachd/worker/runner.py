"""The worker room's door: datum sets run as processes of this machine, each with its own `/pfs`."""

import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from localpachd.db import Database
from localpachd.storage.chunks import Chunks
from localpachd.worker import namespaces
from localpachd.worker.attempts import DatumSet
from localpachd.worker.environment import EnvironmentProblem
from localpachd.worker.gpus import GpuPool
from localpachd.worker.layout import remove
from localpachd.worker.namespaces import PFS, PFS_VARIABLE, Confinement
from localpachd.worker.secrets import Secrets
from localpachd.worker.tasks import BatchServer, CancelToken, DatumResult, DatumWork, LogLine, Task
from localpachd.worker.watch import Cancelled, Watch
from localpachd.worker.workplace import Machine, Workplace


class ProcessRunner:
    """Implements `tasks.Runner`. Thread-safe: each call of `run_set` is one worker slot.

    `scratch` is a directory of its own, emptied here. `confinement` is found out when it is not given.
    """

    def __init__(
        self,
        scratch: Path,
        db: Database,
        chunks: Chunks,
        gpus: GpuPool,
        server: BatchServer,
        secrets: Secrets,
        confinement: Confinement | None = None,
    ) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        for left in scratch.iterdir():  # of a server that was killed
            remove(left)
        self._scratch = scratch.resolve()
        self._server = server
        self._gpus = gpus
        self._lifeline = os.pipe()
        self.confinement = confinement or namespaces.detect(self._scratch)
        self._machine = Machine(db, chunks, secrets, self.confinement, self._lifeline[0])
        self._lock = threading.Lock()
        self._told: set[str] = set()

    def run_set(
        self,
        task: Task,
        datums: Sequence[DatumWork],
        done: Callable[[DatumResult], None],
        log: Callable[[LogLine], None],
        cancel: CancelToken,
    ) -> None:
        """As `tasks.Runner` says. The calling thread starts the processes, which end if it does."""
        holder = task.env.get("PPS_PIPELINE_NAME", "")
        self._tell(holder, task, log)

        def wait(holders: str) -> None:
            log(LogLine("", False, f"waiting for {task.gpus} of this machine's GPUs ({holders})"))

        try:
            with (
                Watch(cancel, self._gpus.ring) as watch,
                self._gpus.lease(holder, task.gpus, watch.check, wait) as devices,
            ):
                self._run(task, datums, done, log, watch, devices)
        except Cancelled:
            return

    def close(self) -> None:
        """Lets go of the machine; call it when no set runs any more."""
        for end in reversed(self._lifeline):
            os.close(end)

    def _run(
        self,
        task: Task,
        datums: Sequence[DatumWork],
        done: Callable[[DatumResult], None],
        log: Callable[[LogLine], None],
        watch: Watch,
        devices: tuple[str, ...],
    ) -> None:
        directory = Path(tempfile.mkdtemp(dir=self._scratch, prefix="worker-"))
        directory.chmod(0o711)  # another user's processes must get through to what is theirs
        try:
            try:
                workplace = Workplace(self._machine, directory, task, devices)
            except (EnvironmentProblem, OSError) as problem:
                log(LogLine("", False, str(problem)))
                for work in datums:
                    watch.check()
                    done(DatumResult(work.id, "FAILED", str(problem)))
                return
            DatumSet(task, workplace, self._server, watch, log).run(datums, done)
        finally:
            try:
                remove(directory)
            except OSError as failure:  # at the next start it is tried again
                log(LogLine("", False, f"cannot remove the worker's directory: {failure}"))

    def _tell(self, holder: str, task: Task, log: Callable[[LogLine], None]) -> None:
        """Says in the pipeline's log, once, where this machine falls short of a cluster."""
        shortcomings = []
        if not self.confinement.mounts:
            shortcomings.append(
                f"{PFS} cannot be mounted on this machine: {PFS_VARIABLE} in the environment names the directory that"
                f" stands for it, and code that has {PFS} written into it will not find its files"
            )
        if task.gpus > self._gpus.leased(task.gpus):
            shortcomings.append(
                f"{task.gpus} GPUs are asked for and this machine has {len(self._gpus.devices)}: running on the CPU"
            )
        with self._lock:
            new = [text for text in shortcomings if f"{holder}: {text}" not in self._told]
            self._told.update(f"{holder}: {text}" for text in new)
        for text in new:
            log(LogLine("", False, text))
