"""Real parts for the worker's tests: a database, a chunk store, a runner that starts processes, file sets to run on."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from localpachd.api.worker import GrpcBatchServer
from localpachd.db import Database
from localpachd.storage.chunks import Chunks
from localpachd.storage.filesets import FileSetRef, write_layer
from localpachd.worker import namespaces
from localpachd.worker.gpus import GpuPool
from localpachd.worker.machine import Machine
from localpachd.worker.namespaces import Confinement
from localpachd.worker.runner import LocalRunner
from localpachd.worker.secrets import Secrets
from localpachd.worker.tasks import CancelToken, DatumResult, DatumWork, InputFile, LogLine, Task
from localpachd.worker.workplace import Stores

BEST = namespaces.detect(Path("/tmp"))
"""How processes get their `/pfs` on this machine; none where the machine forbids it."""

NONE = Confinement()
"""Processes that see the machine as it is."""


@dataclass
class Bench:
    """A worker room on a directory, and what it has said."""

    root: Path
    confinement: Confinement
    gpus: GpuPool = field(default_factory=GpuPool)
    results: list[DatumResult] = field(default_factory=list)
    lines: list[LogLine] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.db = Database(self.root / "db.sqlite")
        self.chunks = Chunks(self.root / "chunks")
        self.scratch = self.root / "scratch"
        self.secrets = Secrets(self.root / "secrets")
        self.stores = Stores(self.db, self.chunks, self.secrets)
        places = Machine(self.stores, self.scratch, self.confinement)
        self.runner = LocalRunner(self.scratch, self.gpus, GrpcBatchServer(), places)
        self._numbers = itertools.count()

    def files(self, content: Mapping[str, bytes]) -> FileSetRef:
        """A file set that holds these files."""
        entries = [(path, "default", self.chunks.store([data])) for path, data in content.items()]
        return (self.db.write(lambda conn: write_layer(conn, entries)),)

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
        self.runner.run_set(task, datums, self.results.append, self.lines.append, cancel or CancelToken())
        return self.results[before:]

    def one(self, task: Task, *inputs: InputFile) -> DatumResult:
        """The result of a single datum."""
        (result,) = self.run(task, self.datum(*inputs))
        return result

    def output(self, result: DatumResult) -> dict[str, bytes]:
        """A result's files with their bytes."""
        return {file.path: b"".join(self.chunks.read(file.content)) for file in result.output}

    @staticmethod
    def sh(script: str, **more: Any) -> Task:
        """A task of one attempt that runs a shell script, in which $PFS is `/pfs` or what stands for it."""
        return Task(cmd=("sh", "-c", f'PFS="${{LOCALPACHD_PFS:-/pfs}}"; {script}'), **{"tries": 1, **more})

    def said(self, user: bool = True) -> list[str]:
        """The lines of the log of user code, or of the worker."""
        return [line.message for line in self.lines if line.user is user]


@pytest.fixture(params=["own /pfs", "no /pfs"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """A worker room, once with `/pfs` mounted and once without."""
    if request.param == "own /pfs" and not BEST.mounts:
        pytest.skip("this machine does not let us mount /pfs")
    made = Bench(tmp_path, BEST if request.param == "own /pfs" else NONE)
    yield made
    assert list(made.scratch.iterdir()) == [], "a datum set left something behind"
    made.runner.close()


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Bench]:
    """A worker room with `/pfs` mounted."""
    if not BEST.mounts:
        pytest.skip("this machine does not let us mount /pfs")
    made = Bench(tmp_path, BEST)
    yield made
    assert list(made.scratch.iterdir()) == [], "a datum set left something behind"
    made.runner.close()
