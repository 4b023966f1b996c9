"""A real server with our pipelines for the end-to-end tests: the actions of users, and the results."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import grpc
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.client.deployment import deployment
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import DeleteFile, PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.library import backbone_push, ingest, queries
from pipelines.library.picture_sources import PictureSource
from pipelines.specifications import pipeline_specs
from stages.backbone.backbone_spec import SPEC_FILE, parse_spec
from tests.command import Command
from tests.servers import Localpachd

OUTPUTS = tuple(spec.name for spec in pipeline_specs.load())
INPUTS = tuple(pipeline_specs.sources(pipeline_specs.load()))

_KEPT = re.compile(r"user code has waited for \d+ s, and goes on with this datum set")

Trees = dict[str, dict[str, bytes]]


def specs() -> list[pipeline_specs.PipelineSpec]:
    """The specifications that ship with lookalike, for small pictures: most tests need any size, and less time."""
    return [
        with_environment(each, IMAGE_SIZE="96") if each.name.startswith("preprocess") else each
        for each in pipeline_specs.load()
    ]


def library_specs() -> list[pipeline_specs.PipelineSpec]:
    """Those of `specs()` that compute the library, for tests that ask nothing of it."""
    return [each for each in specs() if each.name in ("preprocess", "features", "partition", "index")]


def with_environment(spec: pipeline_specs.PipelineSpec, **environment: str) -> pipeline_specs.PipelineSpec:
    """The specification with further or other variables."""
    transform = spec.document["transform"]
    changed = {**transform, "env": {**transform["env"], **environment}}
    return replace(spec, document={**spec.document, "transform": changed})


@dataclass(frozen=True)
class Job:
    """The outcome of a pipeline's job, and its numbers of processed, skipped and failed datums."""

    pipeline: str
    id: str
    state: str
    processed: int
    skipped: int
    failed: int
    restart: int
    reason: str

    @property
    def counts(self) -> tuple[int, int, int]:
        """Datums processed, skipped, failed."""
        return self.processed, self.skipped, self.failed


def _job(info: pps_pb2.JobInfo) -> Job:
    return Job(
        info.job.pipeline.name,
        info.job.id,
        pps_pb2.JobState.Name(info.state).removeprefix("JOB_").lower(),
        info.data_processed,
        info.data_skipped,
        info.data_failed,
        info.restart,
        info.reason,
    )


class World:
    """A server with its state in `root`, and the actions of lookalike's users. `scratch` is for their files."""

    def __init__(self, start: Callable[[Path], Localpachd], root: Path, scratch: Path) -> None:
        self._start = start
        self.root = root
        self.pachd = start(root)
        self.scratch = scratch
        self.client = self.pachd.client()
        self.connection = Connection(self.client, self.pachd.address, "default")
        self._numbers = iter(range(10**9))
        scratch.mkdir(exist_ok=True)

    def killed(self) -> "World":
        """Kills the server as a power cut would and starts it again; returns the new world."""
        self.pachd.kill()
        return World(self._start, self.root, self.scratch)

    def repo(self, name: str, at: str = "", type_: str = "user") -> Repository:
        """A repo at the head of master, or at a commit."""
        return Repository(self.connection, name, at, type_)

    def lookalike(self, *arguments: str | Path, fails: bool = False) -> str:
        """Runs the command in `scratch`; returns its output. It must not show a traceback, and must exit with 0, or
        if `fails` with 1 and one line on stderr."""
        environment = {"PACHD_ADDRESS": self.pachd.address, "PACH_CONFIG": str(self.scratch / "none")}
        done = Command(self.scratch, environment).run(*arguments)
        said = done.stdout + done.stderr
        assert (done.returncode, done.stderr.count("\n")) == ((1, 1) if fails else (0, 0)), said
        return said

    def deploy(self, which: Iterable[pipeline_specs.PipelineSpec] = ()) -> dict[str, str]:
        """Deploys these specifications, by default `specs()`; returns the action for each."""
        done = deployment.deploy(self.connection, list(which) or specs())
        return {each.name: each.action for each in done}

    def push(self, backbone: Path) -> str:
        """Puts the backbone in a directory into models; returns the commit, or "" if it was there already."""
        spec = parse_spec((backbone / SPEC_FILE).read_bytes())
        return backbone_push.put(self.repo("models"), spec, backbone).commit

    def add(self, pictures: Mapping[str, bytes], most_single: int | None = 1000) -> str:
        """Adds pictures to the library under their true names, in blocks if these are more; returns the commit."""
        sources = [self._source(*each) for each in pictures.items()]
        return ingest.add(self.connection, sources, most_single=most_single).commit

    def remove(self, *names: str) -> str:
        """Removes pictures from the library; returns the commit."""
        return ingest.remove(self.connection, names).commit

    def query(self, entry: str, content: bytes | Mapping[str, bytes]) -> str:
        """Puts a query entry, a picture or a directory of them; returns the commit."""
        home = self.scratch / f"query-{next(self._numbers)}"
        files = {"": content} if isinstance(content, bytes) else content
        for name, data in files.items():
            path = home / entry / name if name else home / entry
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return queries.put(self.connection, queries.find([home / entry])).commit

    def forget(self, entry: str) -> str:
        """Removes a query entry by its PFS name; returns the commit."""
        return self.repo("queries").write([DeleteFile(f"/{entry}"), DeleteFile(f"/{entry}/")])

    def copy(self, other: "World", repos: Iterable[str] = INPUTS) -> list[str]:
        """Copies the content of the other world's input repos, one commit each; returns the commits."""
        found = {repo: other.content(repo) for repo in repos}
        return [
            self.repo(repo).write(PutFile(*each) for each in sorted(content.items()))
            for repo, content in found.items()
            if content
        ]

    def newest(self, pipeline: str) -> str:
        """The id of a pipeline's newest job."""
        found = ProjectJobs(self.connection).newest(pipeline)
        assert found is not None
        return found.id

    def settle(self, *commits: str) -> dict[str, Job]:
        """The jobs of commit sets by pipeline, the last set's, once all have ended; they must have succeeded."""
        ended = self.end(*commits)
        assert {each.state for each in ended.values()} <= {"success"}, ended
        return ended

    def end(self, *commits: str) -> dict[str, Job]:
        """The jobs of commit sets by pipeline, the last set's, once all have ended, successfully or not."""
        found = [_job(info) for commit in commits for info in self.client.inspect_job(commit, wait=True)]
        assert {each.state for each in found} <= {"success", "failure", "unrunnable"}, found
        return {each.pipeline: each for each in found}

    def taken_over(self, pipelines: Iterable[str]) -> set[str]:
        """Those of the pipelines of which a process has served several datum sets."""
        return {
            each
            for each in pipelines
            if any(_KEPT.fullmatch(line.message.strip()) for line in self.client.get_pipeline_logs(each))
        }

    def datums(self, done: Job) -> dict[str, int]:
        """The datums of a job counted by state, as `list datum` shows them."""
        states: dict[str, int] = {}
        for info in self.client.list_datum(done.pipeline, done.id):
            name = pps_pb2.DatumState.Name(info.state).lower()
            states[name] = states.get(name, 0) + 1
        return states

    def trees(self, at: str = "") -> Trees:
        """The hash of every file and directory, by path, of every pipeline's output."""
        return {repo: self.hashes(repo, at) for repo in OUTPUTS}

    def hashes(self, repo: str, at: str = "") -> dict[str, bytes]:
        """The hash of every file and directory of a repo, by path."""
        try:
            return {info.file.path: info.hash for info in self.client.walk_file((repo, "master", at or None), "/")}
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.NOT_FOUND
            return {}

    def content(self, repo: str, at: str = "") -> dict[str, bytes]:
        """Every file of a repo by path."""
        return dict(self.repo(repo, at).read_all("/"))

    def commits(self) -> set[str]:
        """The ids of all commits on the server."""
        return {info.commit_set.id for info in self.client.list_commit()}

    def _source(self, name: str, data: bytes) -> PictureSource:
        path = self.scratch / f"file-{next(self._numbers)}"
        path.write_bytes(data)
        return PictureSource(name, path, len(data))


class MakeWorld(Protocol):
    """Makes a world on a server of its own, without repos and pipelines; a `late` one is as late as a cluster, and
    stages that are not forked (`tests.forked_stages`) take their time to start."""

    def __call__(self, name: str, late: bool = False, forks: bool = True) -> World: ...


Paint = Callable[..., bytes]
"""Makes a picture file: paint(seed, variant=0, size=96, kind="PNG"). Variants of a seed differ in one pixel."""
