"""An engine for the tests of the pps room: a real pfs and real processes, without gRPC."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from localpachd.database import Database
from localpachd.pace import AT_ONCE, Pace
from localpachd.pfs import commits, contents, repos
from localpachd.pfs.changes import ChangeFeed, Steps
from localpachd.pfs.files import file_modification
from localpachd.pfs.pfs_entities import Branch, Commit, CommitInfo, Repo
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.upkeep.commit_finisher import CommitFinisher
from localpachd.pps import jobs, log_queries
from localpachd.pps.datum_records import DatumRecord
from localpachd.pps.log_queries import LogQuery
from localpachd.pps.pps_entities import Job, JobInfo, LogMessage, Pipeline, SpecText
from localpachd.pps.pps_service import PpsService
from localpachd.storage.chunk_store import ChunkStore
from localpachd.storage.filesets import DEFAULT_TAG
from localpachd.storage.url_reach import UrlReach
from localpachd.worker.gpu_pool import GpuPool
from localpachd.worker.local_runner import LocalRunner
from localpachd.worker.machine.machine_view import view
from localpachd.worker.machine.machine_workplaces import MachineBackend, ProcessSurroundings
from localpachd.worker.secret_store import SecretStore
from localpachd.worker.workplace import WorkerStores
from tests.localpachd.worker.plain_batches import PlainBatches

COPY = ("sh", "-c", 'cp -r /pfs/in/. "${LOCALPACHD_PFS:-/pfs}/out/"')

T = TypeVar("T")


def blocking(steps: Steps[T]) -> Iterator[T]:
    """The results of steps, waited for in this thread."""
    for step in steps:
        if isinstance(step, ChangeFeed):
            step.wait()
        else:
            yield step


class NoSidecars:
    """For an engine without gRPC: its spouts have no server to call."""

    def open(self, output: Branch) -> int:
        return 9

    def close(self, port: int) -> None:
        pass


class Clock:
    """A clock, in nanoseconds since the epoch, that starts at the machine's time and that tests move. `asked` is called
    once, when the clock is read next."""

    def __init__(self) -> None:
        self.time = time.time_ns()
        self.asked: Callable[[], None] | None = None

    def __call__(self) -> int:
        asked, self.asked = self.asked, None
        if asked is not None:
            asked()
        return self.time


class Engine:
    """Pfs and pps over one directory, with short methods for tests. Names are in project `default`. Unless its pace is
    at once, the test starts the finisher."""

    def __init__(self, root: Path, gpus: GpuPool, pace: Pace = AT_ONCE) -> None:
        self.root = root
        self.db = Database(root / "state.sqlite")
        self.chunks = ChunkStore(root / "chunks")
        self.pfs = PfsService(self.db, self.chunks, jobs, pace=pace, reach=UrlReach((root,)))
        self.finisher = CommitFinisher(self.pfs)
        self.gpus = gpus
        self.secrets = SecretStore(root / "secrets")
        self.clock = Clock()
        self._begin()

    def _begin(self) -> None:
        scratch = self.root / "scratch"
        surroundings = ProcessSurroundings(view((), (self.root,)))
        machine = MachineBackend(WorkerStores(self.db, self.chunks, self.secrets), scratch, surroundings=surroundings)
        self.runner = LocalRunner(scratch, self.gpus, PlainBatches(), machine)
        self.pps = PpsService(self.pfs, self.runner, self.gpus, 0, self.secrets, NoSidecars(), self.clock)
        self.pps.start()

    def _end(self) -> None:
        self.pps.stop()
        self.runner.close()

    def restart(self) -> None:
        """Stops everything that runs and continues with it, as a server that is stopped and started again."""
        self._end()
        self._begin()

    def close(self) -> None:
        self._end()
        self.finisher.stop()
        self.chunks.close()
        self.db.close()

    def sleep(self, seconds: float) -> None:
        """Advances the engine's clock."""
        self.clock.time += int(seconds * 1e9)
        self.pfs.changes.wake()

    def repo(self, name: str) -> Repo:
        made = Repo("default", name)
        self.pfs.transact(lambda txn: repos.create(txn, made))
        return made

    def put(self, repo: str, files: Mapping[str, str | None], branch: str = "master") -> None:
        """Writes files in one commit; None deletes."""
        changes: list[file_modification.FileChange] = []
        for path, text in files.items():
            changes.append(file_modification.FileRemoval(path, DEFAULT_TAG))
            if text is not None:
                content = self.chunks.store([text.encode()])
                changes.append(file_modification.FileAddition(path, DEFAULT_TAG, content))
        file_modification.modify(self.pfs, Commit(Repo("default", repo), branch=branch), changes)

    def create(self, name: str, tree: Mapping[str, Any], shell: str, **fields: Any) -> None:
        """Creates a pipeline that runs a shell script, in which $PFS is the path of /pfs."""
        self.submit(self.request(name, tree, shell, **fields))

    def request(self, name: str, tree: Mapping[str, Any], shell: str, **fields: Any) -> dict[str, Any]:
        """The request of `create`."""
        script = f'PFS="${{LOCALPACHD_PFS:-/pfs}}"\n{shell}'
        transform = {"cmd": ["sh", "-e"], "stdin": script.split("\n"), **fields.pop("transform", {})}
        return {"pipeline": {"name": name}, "transform": transform, "input": dict(tree), **fields}

    def submit(self, request: Mapping[str, Any]) -> None:
        """Creates or updates a pipeline."""
        self.pfs.transact(lambda txn: self.pps.add_pipeline(txn, request, SpecText()))

    def step(self, change: Callable[..., None], *arguments: object) -> None:
        """Makes a change of `jobs` or `pipelines` in a transaction of its own."""
        self.pfs.transact(lambda txn: change(txn, *arguments))

    def stop(self, job: Job) -> None:
        """Kills a job."""
        self.step(jobs.stop, job)

    def jobs(self, name: str) -> list[JobInfo]:
        """The jobs of all versions, newest first."""
        return list(self.pps.jobs.list_all(Pipeline("default", name), history=-1))

    def settle(self, name: str) -> JobInfo:
        """The newest job of a pipeline, once it is over."""
        with self._deadline() as active:
            return next(blocking(self.pps.jobs.await_end(self.jobs(name)[0].job, active)))

    def log(self, query: LogQuery) -> Iterator[LogMessage]:
        """The lines of a log, waited for if they are followed."""
        return blocking(log_queries.read(self.db, self.pfs.changes, self.pps.server_log, query, lambda: True))

    def until(self, look: Callable[[], Any]) -> Any:
        """Waits at most a minute for a condition that some change will make true."""
        with self._deadline() as active:
            found = self.pfs.changes.wait_for(lambda: look() or None, active)
        assert found is not None, "the condition that the test waits for did not become true"
        return found

    @contextmanager
    def _deadline(self) -> Iterator[Callable[[], bool]]:
        """The condition of a wait that ends after a minute even if nothing changes."""
        end = time.monotonic() + 60
        alarm = threading.Timer(61, self.pfs.changes.wake)
        alarm.daemon = True
        alarm.start()
        try:
            yield lambda: time.monotonic() < end
        finally:
            alarm.cancel()

    def commit(self, name: str, ref: str = "", kind: str = "user") -> CommitInfo:
        with self.db.read() as conn:
            return commits.resolve(conn, Commit(Repo("default", name, kind), ref, "" if ref else "master"))

    def files(self, name: str, ref: str = "", kind: str = "user") -> dict[str, str]:
        """The text of each file in a commit, by path."""
        info = self.commit(name, ref, kind)
        with self.db.read() as conn:
            found = list(contents.fileset(conn, info).walk())
        return {file.path: b"".join(self.chunks.read(file.content)).decode() for file in found}

    def datums(self, job: Job) -> dict[str, DatumRecord]:
        """A job's datums by the paths of their inputs."""
        return {",".join(each.path for each in record.inputs): record for record in self.pps.list_datums(job)}

    def lines(self, name: str) -> list[str]:
        """The lines of a pipeline's user code."""
        return [line.message for line in self.log(LogQuery(Pipeline("default", name))) if line.user]


def pfs_input(repo: str, glob: str = "/*", **fields: Any) -> dict[str, Any]:
    return {"pfs": {"repo": repo, "glob": glob, **fields}}
