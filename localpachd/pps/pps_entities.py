"""The entities of the pps room: pipelines, jobs, datums, log lines. Frozen; knows no SQL and no gRPC."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from localpachd.pfs.pfs_entities import META, SPEC, Branch, Commit, Repo
from localpachd.pps.datums import DatumInput
from localpachd.pps.specs.spec import PipelineSpec
from localpachd.worker.tasks import DatumStats


class PipelineState(StrEnum):
    """A pipeline's state by the name that `pps.proto` gives it."""

    STARTING = "PIPELINE_STARTING"
    RUNNING = "PIPELINE_RUNNING"
    RESTARTING = "PIPELINE_RESTARTING"
    FAILURE = "PIPELINE_FAILURE"
    PAUSED = "PIPELINE_PAUSED"
    STANDBY = "PIPELINE_STANDBY"
    CRASHING = "PIPELINE_CRASHING"


class JobState(StrEnum):
    """A job's state by the name that `pps.proto` gives it."""

    UNKNOWN = "JOB_STATE_UNKNOWN"
    CREATED = "JOB_CREATED"
    STARTING = "JOB_STARTING"
    RUNNING = "JOB_RUNNING"
    EGRESSING = "JOB_EGRESSING"
    FINISHING = "JOB_FINISHING"
    SUCCESS = "JOB_SUCCESS"
    FAILURE = "JOB_FAILURE"
    KILLED = "JOB_KILLED"
    UNRUNNABLE = "JOB_UNRUNNABLE"

    @property
    def terminal(self) -> bool:
        """Whether a job in this state is over."""
        return self in _TERMINAL


_TERMINAL = frozenset({JobState.SUCCESS, JobState.FAILURE, JobState.KILLED, JobState.UNRUNNABLE})


@dataclass(frozen=True, slots=True, order=True)
class Pipeline:
    """A pipeline by project and name."""

    project: str
    name: str

    @property
    def repo(self) -> Repo:
        """Its output repo."""
        return Repo(self.project, self.name)

    @property
    def spec_repo(self) -> Repo:
        """The repo whose empty commits mark the versions."""
        return Repo(self.project, self.name, SPEC)

    @property
    def spec_branch(self) -> Branch:
        """The branch of those commits; it is in the provenance of every output."""
        return Branch(self.spec_repo, "master")

    @property
    def meta_repo(self) -> Repo:
        """The repo that keeps a record of every datum."""
        return Repo(self.project, self.name, META)

    def worker(self, version: int, number: int) -> str:
        """The name of a version's worker; `number` counts its workers from 0."""
        return f"{self.project}-{self.name}-v{version}-{number}"

    def __str__(self) -> str:
        return f"{self.project}/{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class Job:
    """A job by pipeline and id; the id is that of its commit set."""

    pipeline: Pipeline
    id: str

    @property
    def output(self) -> Commit:
        """The commit it writes."""
        return Commit(self.pipeline.repo, self.id)

    @property
    def meta(self) -> Commit:
        """The commit that keeps its datums' records."""
        return Commit(self.pipeline.meta_repo, self.id)

    def __str__(self) -> str:
        return f"{self.pipeline}@{self.id}"


@dataclass(frozen=True, slots=True)
class SpecText:
    """A specification as JSON text: as it was sent, and merged over the defaults of that time."""

    user: str = ""
    effective: str = ""


@dataclass(frozen=True, slots=True)
class SpecDefaults:
    """Defaults of specifications: JSON as it was set, and when, in nanoseconds since the epoch, None for never."""

    spec: str = "{}"
    created: int | None = None


@dataclass(frozen=True, slots=True)
class PipelineInfo:
    """One version of a pipeline. `created` is the time of this version in nanoseconds since the epoch."""

    pipeline: Pipeline
    version: int
    spec_commit: Commit
    stopped: bool
    state: PipelineState
    reason: str
    last_job_state: JobState
    spec: PipelineSpec
    written: SpecText
    created: int
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DatumCounters:
    """Numbers of a job's datums: processed, skipped, all, failed and recovered."""

    processed: int = 0
    skipped: int = 0
    total: int = 0
    failed: int = 0
    recovered: int = 0


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """A worker and the datum that it is processing, without data between two attempts. `started`, when the attempt
    began, in nanoseconds since the epoch."""

    worker: str
    job: str
    started: int
    data: tuple[DatumInput, ...]


@dataclass(frozen=True, slots=True)
class JobInfo:
    """A job. Times in nanoseconds since the epoch, None until they come."""

    job: Job
    version: int
    output_commit: Commit
    state: JobState
    reason: str
    restart: int
    counters: DatumCounters
    stats: DatumStats
    created: int
    started: int | None
    finished: int | None
    spec: PipelineSpec
    worker_status: tuple[WorkerStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class JobSetInfo:
    """The jobs of one commit set, upstream first."""

    id: str
    jobs: tuple[JobInfo, ...]


@dataclass(frozen=True, slots=True)
class JobStates:
    """The topic of changes in the states of a pipeline's jobs. The topic of its versions and of its own state is the
    Pipeline itself."""

    pipeline: Pipeline


@dataclass(frozen=True, slots=True)
class PipelineActivity:
    """The topic of changes in a pipeline's log and in its jobs' counters, or, with None, in the server's log."""

    pipeline: Pipeline | None


class LogLevel(IntEnum):
    """The importance of a log line, by the number that `logs.proto` gives it."""

    DEBUG = 1
    INFO = 2
    ERROR = 3


@dataclass(frozen=True, slots=True)
class LogMessage:
    """One line of a log. `ts` in nanoseconds since the epoch; `master` marks the server's lines about a pipeline and
    its jobs; `data` holds the path and hash of each of a datum's inputs."""

    ts: int
    pipeline: Pipeline | None
    job: str
    datum: str
    worker: str
    user: bool
    master: bool
    message: str
    data: tuple[tuple[str, bytes], ...] = ()
    level: LogLevel = LogLevel.INFO
