"""A worker room for tests, of real parts: a database, a chunk store, a runner, and file sets to run on."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from localpachd.database import Database
from localpachd.storage.chunk_store import ChunkStore
from localpachd.storage.filesets import FileSetRef, write_layer
from localpachd.worker.docker.container_workplaces import DockerBackend
from localpachd.worker.gpu_pool import GpuPool
from localpachd.worker.local_runner import LocalRunner
from localpachd.worker.machine import namespaces
from localpachd.worker.machine.machine_view import view
from localpachd.worker.machine.machine_workplaces import MachineBackend, ProcessSurroundings
from localpachd.worker.machine.namespaces import Confinement
from localpachd.worker.secret_store import SecretStore
from localpachd.worker.tasks import BatchServer, CancelToken, DatumResult, DatumWork, InputFile, LogLine, Task
from localpachd.worker.workplace import WorkerStores, WorkplaceBackend
from tests import containers
from tests.localpachd.worker.plain_batches import PlainBatches

BEST = namespaces.detect(Path("/tmp"))
"""The best confinement on this machine; without a `/pfs` where the machine forbids mounting one."""

NONE = Confinement()
"""Processes that see the machine as it is."""


@dataclass
class Bench:
    """A worker room on a directory, with the results and log lines of what it ran."""

    root: Path
    confinement: Confinement | None
    """None for commands in containers."""
    gpus: GpuPool = field(default_factory=GpuPool)
    results: list[DatumResult] = field(default_factory=list)
    lines: list[LogLine] = field(default_factory=list)
    most_warm: int = 16
    batches: BatchServer = field(default_factory=PlainBatches)

    def __post_init__(self) -> None:
        self.db = Database(self.root / "db.sqlite")
        self.chunks = ChunkStore(self.root / "chunks")
        self.scratch = self.root / "scratch"
        self.secrets = SecretStore(self.root / "secrets")
        self.stores = WorkerStores(self.db, self.chunks, self.secrets)
        self.runner = LocalRunner(self.scratch, self.gpus, self.batches, self._backend(), most_warm=self.most_warm)
        self._numbers = itertools.count()

    def _backend(self) -> WorkplaceBackend:
        if self.confinement is not None:
            self.image = ""
            return MachineBackend(
                self.stores, self.scratch, self.confinement, ProcessSurroundings(view((), (self.root,)))
            )
        self.image = containers.image()
        return DockerBackend(self.stores, containers.found(), self.root, lambda: None)

    @property
    def mounts(self) -> bool:
        """Whether `/pfs` is mounted for commands."""
        return self.confinement is None or self.confinement.mounts

    @property
    def shared(self) -> str:
        """A directory that all commands of one datum set see and may write to."""
        return "/tmp" if self.confinement is None else str(self.root)

    def there(self, task: Task) -> Task:
        """The same task, in the image of tests if it runs in containers."""
        return replace(task, image=task.image or self.image)

    def files(self, content: Mapping[str, bytes]) -> FileSetRef:
        """A file set that holds these files."""
        entries = [(path, "default", self.chunks.store([data])) for path, data in content.items()]
        return (self.db.write(lambda conn: write_layer(conn, entries)),)

    def lose_all_chunks(self) -> None:
        """Takes all content away, also from the trash."""
        self.chunks.sweep([])
        self.chunks.empty_trash(-1)

    def input(self, name: str, path: str, content: Mapping[str, bytes], **how: bool) -> InputFile:
        """An input of a datum: `path` of a file set that holds `content`."""
        return InputFile(name, path, self.files(content), **how)

    def datum(self, *inputs: InputFile, id: str = "", **env: str) -> DatumWork:
        """A datum with the variables that Pachyderm gives it."""
        own = {each.name: f"/pfs/{each.name}{each.path.rstrip('/')}" for each in inputs}
        own |= {f"{each.name}_COMMIT": "0" * 32 for each in inputs}
        return DatumWork(id or f"datum-{next(self._numbers)}", inputs, {**own, **env})

    def run(self, task: Task, *datums: DatumWork, cancel: CancelToken | None = None) -> Sequence[DatumResult]:
        """Runs one datum set and returns the results of this run."""
        before = len(self.results)
        self.runner.run_set(self.there(task), datums, self.results.append, self.lines.append, cancel or CancelToken())
        return self.results[before:]

    def one(self, task: Task, *inputs: InputFile) -> DatumResult:
        """The result of a single datum."""
        (result,) = self.run(task, self.datum(*inputs))
        return result

    def output(self, result: DatumResult) -> dict[str, bytes]:
        """A result's files with their bytes."""
        return {file.path: b"".join(self.chunks.read(file.content)) for file in result.output}

    def sh(self, script: str, **more: Any) -> Task:
        """A task of one attempt that runs a shell script, in which $PFS is `/pfs` or its replacement."""
        cmd = ("sh", "-c", f'PFS="${{LOCALPACHD_PFS:-/pfs}}"; {script}')
        return Task(cmd=cmd, **{"tries": 1, "image": self.image, **more})

    def close(self) -> None:
        """Checks that nothing is left of what ran."""
        if self.confinement is None:
            assert containers.running(f"localpachd.root={self.root}") == []
        self.runner.close()
        assert list(self.scratch.iterdir()) == [], "a datum set left something behind"

    def said(self, user: bool = True) -> list[str]:
        """The lines of the log of user code, or of the worker."""
        return [line.message for line in self.lines if line.user is user]
