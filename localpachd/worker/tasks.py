"""The values that go into and come out of the worker room: tasks, datums, results, statistics, lines of the log.

They are frozen and know no pipelines, commits or jobs: the pps room fills them in and reads them back.
"""

import threading
import time
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from localpachd.storage.filesets import FileContent, FileSetRef
from speclang.warm_annotations import WarmSettings


class DatumOutcome(StrEnum):
    """The outcome of a datum, as its meta file stores it (`src/server/worker/datum/datum.proto`)."""

    PROCESSED = "PROCESSED"
    FAILED = "FAILED"
    RECOVERED = "RECOVERED"


@dataclass(frozen=True, slots=True)
class SecretUse:
    """A task's use of the secret `name`: the value of `key` in the variable `env_var`, all of its values as files in
    the directory `mount_path`, or both. A field that is "" asks for nothing."""

    name: str
    key: str = ""
    env_var: str = ""
    mount_path: str = ""


@dataclass(frozen=True, slots=True)
class WorkerPod:
    """The pod that a worker would be on a cluster, as its processes are told of it: names, and the port of the server
    on the machine's loopback. A field that is "" or 0 is left out."""

    project: str = ""
    pipeline: str = ""
    spec_commit: str = ""
    worker: str = ""
    server_port: int = 0


@dataclass(frozen=True, slots=True)
class Task:
    """A pipeline's command, with all that it needs: a worker runs it for each datum or, with `batching`, for each set.

    `env` holds `transform.env`, which takes precedence over the variables of the `pod`. `refusing_port` is the port
    where a command that is not batched is told so if it calls NextDatum; the runner fills it in. `datum_timeout` is in
    seconds, per attempt; `tries` counts all attempts. `gpus` are leased for the run of a set. `image`, `memory` (bytes)
    and `cpus`, limits of each worker where they are not 0, are for backends that start containers. The values of
    `secrets` are looked up for each set and are no part of `env`, which is kept with the datums. `pachd` is the address
    (host:port) for a client's configuration file, "" for no such file. `warm` asks that a batched process be kept for
    the next set of an equal task.
    """

    cmd: tuple[str, ...]
    stdin: tuple[str, ...] = ()
    err_cmd: tuple[str, ...] = ()
    err_stdin: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    pod: WorkerPod = WorkerPod()
    refusing_port: int = 0
    accept_return_code: frozenset[int] = frozenset()
    batching: bool = False
    tries: int = 3
    datum_timeout: float | None = None
    working_dir: str = ""
    user: str = ""
    gpus: int = 0
    image: str = ""
    memory: int = 0
    cpus: float = 0.0
    secrets: tuple[SecretUse, ...] = ()
    pachd: str = ""
    warm: WarmSettings | None = None


@dataclass(frozen=True, slots=True)
class ImageStatus:
    """The status of an image: `ready` for workers, `coming`, or neither, in which case it cannot be fetched. `reason`
    explains every status but the first."""

    ready: bool
    coming: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ServicePorts:
    """The ports of a service: the one that it listens on (`internal`), the one of the machine's loopback that leads
    there (`external`, 0 for any free port), and the server's. With `own_network` the service gets a network of its own,
    where the machine can do that, and the server is all that it can reach."""

    internal: int
    external: int
    server: int
    own_network: bool = True


@dataclass(frozen=True, slots=True)
class InputFile:
    """One input of a datum: the file or, with a trailing slash, directory `path` of the file set `files`.

    It appears as `/pfs/<name><path>`: as files, as named pipes (`lazy`), or as empty files (`empty_files`).
    """

    name: str
    path: str
    files: FileSetRef
    lazy: bool = False
    empty_files: bool = False


@dataclass(frozen=True, slots=True)
class DatumWork:
    """One datum to be processed. `env` holds its own variables; those named like an input are paths below `/pfs`."""

    id: str
    inputs: tuple[InputFile, ...]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DatumStats:
    """The cost of a datum: times in seconds, sizes in bytes; those of its last attempt, as Pachyderm counts."""

    download_time: float = 0.0
    process_time: float = 0.0
    upload_time: float = 0.0
    download_bytes: int = 0
    upload_bytes: int = 0

    def __add__(self, other: "DatumStats") -> "DatumStats":
        """The sum that a job shows for its datums."""
        return DatumStats(
            self.download_time + other.download_time,
            self.process_time + other.process_time,
            self.upload_time + other.upload_time,
            self.download_bytes + other.download_bytes,
            self.upload_bytes + other.upload_bytes,
        )


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file that user code left below `/pfs/out`; `path` is absolute within the output repo. linked: whether it was,
    or lay behind, a symbolic link, whose bytes Pachyderm does not count as uploaded."""

    path: str
    content: FileContent
    linked: bool = False


@dataclass(frozen=True, slots=True)
class DatumResult:
    """The result of a datum. `reason` is empty when it was processed.

    `output` is in path order. For a datum that failed or was recovered it is the output of the last attempt, which
    belongs in the meta commit only. Its chunks are stored; the caller flushes them.
    """

    id: str
    state: DatumOutcome
    reason: str = ""
    stats: DatumStats = DatumStats()
    output: tuple[OutputFile, ...] = ()


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line for the pipeline's log: from user code (`user`) or from the worker about it.

    `datum_id` is "" when no datum is being processed (a batched process is between its datums).
    """

    datum_id: str
    user: bool
    message: str


LogSink = Callable[[LogLine], None]
"""Takes the lines of a log, from any thread."""

ResultSink = Callable[[DatumResult], None]
"""Takes the results of datums as they end."""


class CancelToken:
    """Stops a running datum set, or ends the current attempt of its current datum.

    Thread-safe; one token for one call of the runner.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._running: tuple[str, Callable[[str], None]] | None = None
        self._began = 0
        self._wake: Callable[[], None] | None = None

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> None:
        """Stops the set: its processes are killed and `run_set` returns without a result for the current datum."""
        with self._lock:
            self._cancelled = True
            if self._wake is not None:
                self._wake()

    def restart(self, datums: Container[str]) -> bool:
        """Ends the current attempt if it processes one of these datum ids; it counts as failed. True if so."""
        with self._lock:
            if self._running is None or self._running[0] not in datums:
                return False
            self._running[1]("the datum was restarted by request")
            return True

    @property
    def datum(self) -> str:
        """The id of the datum of the current attempt; "" while there is none."""
        running = self._running
        return running[0] if running else ""

    @property
    def began(self) -> int:
        """When the current attempt began, in nanoseconds since the epoch; 0 while there is none."""
        return self._began

    def attach(self, wake: Callable[[], None] | None) -> None:
        """For runners: `cancel` calls `wake`, which must not block; if it was called before, so is `wake`, at once.
        None detaches."""
        with self._lock:
            self._wake = wake
            if wake is not None and self._cancelled:
                wake()

    def attempt(self, datum: str, end: Callable[[str], None] | None) -> None:
        """For runners: names the datum whose attempt `end(reason)` ends. None: no attempt is running."""
        with self._lock:
            self._running = None if end is None else (datum, end)
            self._began = 0 if end is None else time.time_ns()


class BatchServer(Protocol):
    """Serves the NextDatum calls of batched processes. Implemented by the room that knows gRPC."""

    def open(self, handler: Callable[[str], list[str] | None]) -> int:
        """Serves NextDatum on a fresh loopback port and returns it.

        Each call runs `handler(error)` in a thread of its own. The handler blocks until the next datum is in place and
        returns that datum's `KEY=value` list, or None when the process is being stopped and any answer will do. A
        PachError that it raises is the answer.
        """

    def close(self, port: int) -> None:
        """Stops serving a port that `open` returned, without waiting for calls in progress."""
