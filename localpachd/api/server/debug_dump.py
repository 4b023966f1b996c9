"""The files of a debug dump, as a request names them, with every secret hidden."""

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from google.protobuf import json_format
from google.protobuf.message import Message

from localpachd.api.calls.cancellation import CallContext
from localpachd.api.messages.times import seconds
from localpachd.api.pachyderm_version import PachydermVersion
from localpachd.api.pfs.pfs_servicer import PfsServicer
from localpachd.api.pps import logs_servicer
from localpachd.api.pps.pps_servicer import PpsServicer
from localpachd.api.schema.schema import debug_pb2, pfs_pb2, pps_pb2
from localpachd.api.server.admin_servicers import ADDITIONAL
from localpachd.database import Database
from localpachd.diagnosis import profiles, server_facts
from localpachd.diagnosis.tar_archive import TarArchive, packed
from localpachd.errors import PachError, Unimplemented
from localpachd.pps import job_rows, log_queries
from localpachd.pps.pipelines import ALL_VERSIONS
from localpachd.pps.pps_entities import Pipeline
from localpachd.pps.pps_service import PpsService
from localpachd.worker.secret_store import SecretStore
from speclang.redaction import SecretRedaction, secret_values

APP, POD = "pachd", "localpachd"
"""The server as an app with one pod."""
_HERE = f"{APP}/pods/{POD}"
_LINES = 30_000
"""The newest lines of each pipeline's log, as many as Pachyderm takes from Loki."""

_log = logging.getLogger(__name__)

DumpContent = Iterable[str | bytes]
DumpFiles = Iterator[tuple[str, DumpContent]]
"""Names below a directory, with content: text of whole lines, or bytes without secrets."""


@dataclass(frozen=True, slots=True)
class DumpSources:
    """All that dumps are made from."""

    pfs: PfsServicer
    pps: PpsServicer
    pipelines: PpsService
    db: Database
    secrets: SecretStore
    facts: server_facts.ServerFacts
    version: PachydermVersion


@dataclass(frozen=True, slots=True)
class DumpStep:
    """A part of a task: the directory of its files, and a function that makes them."""

    directory: str
    files: Callable[[], DumpFiles]


class DebugDump:
    """One dump, written into an archive. Raises PachError for a pod that does not exist."""

    def __init__(
        self, sources: DumpSources, request: debug_pb2.DumpV2Request, context: CallContext, archive: TarArchive
    ) -> None:
        self._sources = sources
        self._request = request
        self._context = context
        self._archive = archive
        self._check_pods()

    def run(self, active: Callable[[], bool]) -> Iterator[tuple[str, int, int]]:
        """Adds the files. Yields after each step its task, the steps of the task that are done, and their number. From
        the moment on when `active` is false, each step leaves only a note."""
        hide = self._redaction()
        for task, steps in self._tasks().items():
            for done, step in enumerate(steps, start=1):
                self._take(step, hide, active)
                yield task, done, len(steps)

    def _take(self, step: DumpStep, hide: SecretRedaction, active: Callable[[], bool]) -> None:
        try:
            _check(active)
            for name, content in step.files():
                self._archive.add(f"{step.directory}/{name}", _shown(content, hide, active))
        except Exception as error:  # the other steps may succeed
            if not isinstance(error, PachError):
                _log.exception("cannot dump %s", step.directory)
            text = str(error) if isinstance(error, PachError) else f"{type(error).__name__}: {error}"
            self._archive.add(f"{step.directory}/error.txt", [hide(f"{text}\n")])

    def _tasks(self) -> Mapping[str, Sequence[DumpStep]]:
        request, system = self._request, self._request.system
        tasks = {
            "source-repos": self._source_repos() if request.input_repos else [],
            "pipelines": [self._pipeline(each) for each in request.pipelines],
            "database": [DumpStep("database", self._database)] if system.database else [],
            "version": [DumpStep(f"{APP}/{POD}/{APP}", self._version)] if system.version else [],
            "describes": [self._description(each) for each in system.describes],
            "logs": [self._logs(each) for each in system.logs],
            "profiles": [self._profiles(each) for each in system.profiles if each.name == APP],
            "binaries": [DumpStep(_HERE, _binary) for each in system.binaries if each.name == APP],
            "defaults": [DumpStep("defaults", self._defaults)] if request.defaults.cluster_defaults else [],
            "starlark": [_script(each) for each in request.starlark_scripts],
        }
        return {name: steps for name, steps in tasks.items() if steps}

    def _check_pods(self) -> None:
        system = self._request.system
        for app in (*system.describes, *system.logs, *system.profiles, *system.binaries):
            for pod in app.pods:
                if (app.name, pod.name) != (APP, POD):
                    raise PachError(f'Requested pod "{pod.name}" of app "{app.name}" not found')

    def _redaction(self) -> SecretRedaction:
        values = [value for secret in self._sources.secrets.every() for value in secret.data.values()]
        documents: list[object] = [
            info.spec.raw for info in self._sources.pipelines.list_pipelines(history=ALL_VERSIONS)
        ]
        documents.append(self._defaults_now())
        return SecretRedaction([*values, *(value.encode() for value in secret_values(documents))])

    def _version(self) -> DumpFiles:
        # Not with the plus of the real version: `pachctl debug analyze` reads numbers up to a hyphen.
        number = ".".join(map(str, self._sources.version))
        yield "version.txt", [f"{number}-{ADDITIONAL.lstrip('+')}\n"]
        yield "versions.txt", [server_facts.program_versions()]

    def _source_repos(self) -> list[DumpStep]:
        made = {(each.pipeline.project, each.pipeline.name) for each in self._sources.pipelines.list_pipelines()}
        found = self._sources.pfs.ListRepo(pfs_pb2.ListRepoRequest(type="user"))
        sources = [each.repo for each in found if (each.repo.project.name, each.repo.name) not in made]
        return [
            DumpStep(f"source-repos/{each.project.name}/{each.name}", partial(self._commits, each)) for each in sources
        ]

    def _commits(self, repo: pfs_pb2.Repo) -> DumpFiles:
        request = pfs_pb2.ListCommitRequest(repo=repo, all=True)
        yield "commits.json", _documents(self._sources.pfs.ListCommit(request))

    def _pipeline(self, named: debug_pb2.Pipeline) -> DumpStep:
        pipeline = pps_pb2.Pipeline(project=pfs_pb2.Project(name=named.project), name=named.name)

        def files() -> DumpFiles:
            versions = pps_pb2.ListPipelineRequest(pipeline=pipeline, history=ALL_VERSIONS)
            yield "spec.json", _documents(self._sources.pps.ListPipeline(versions))
            yield from self._commits(pfs_pb2.Repo(project=pipeline.project, name=pipeline.name, type="user"))
            of_all = pps_pb2.ListJobRequest(pipeline=pipeline, history=ALL_VERSIONS)
            yield "jobs.json", _documents(self._sources.pps.ListJob(of_all))

        return DumpStep(_directory(named), files)

    def _database(self) -> DumpFiles:
        yield "tables.json", [_json(server_facts.tables(self._sources.db))]
        yield "files.json", [_json(self._sources.facts.files())]

    def _description(self, app: debug_pb2.App) -> DumpStep:
        if not app.HasField("pipeline"):
            return DumpStep(_HERE, lambda: iter([("describe.txt", [self._sources.facts.describe()])]))
        pipeline = Pipeline(app.pipeline.project, app.pipeline.name)

        def files() -> DumpFiles:
            info = self._sources.pipelines.inspect_pipeline(pipeline)
            text = f"state: {info.state} {info.reason}\nstopped: {info.stopped}\nversion: {info.version}\n"
            yield "describe.txt", [text, *self._workers(pipeline)]

        return DumpStep(_directory(app.pipeline), files)

    def _workers(self, pipeline: Pipeline) -> Iterator[str]:
        """The datum of each busy worker, a line each."""
        with self._sources.db.read() as conn:
            unfinished = [job for job, *_ in job_rows.unfinished(conn, [pipeline])]
        for job in unfinished:
            for worker in self._sources.pipelines.jobs.inspect(job).worker_status:
                paths = ", ".join(each.path for each in worker.data)
                seconds_ = (time.time_ns() - worker.started) / 1e9
                yield f"job {job.id}: {worker.worker} has worked on {paths} for {seconds_:.1f} s\n"

    def _logs(self, app: debug_pb2.App) -> DumpStep:
        if not app.HasField("pipeline"):
            lines = (f"{line.message}\n" for line in self._sources.pipelines.server_log.tail(0).lines())
            return DumpStep(f"{_HERE}/{APP}", lambda: iter([("logs.txt", lines)]))
        pipeline = Pipeline(app.pipeline.project, app.pipeline.name)

        def files() -> DumpFiles:
            with self._sources.db.read() as conn:
                found = log_queries.newest(conn, pipeline, _LINES)
            yield "logs.txt", (f"{json.dumps(logs_servicer.as_json(line), ensure_ascii=False)}\n" for line in found)

        return DumpStep(_directory(app.pipeline), files)

    def _profiles(self, app: debug_pb2.App) -> DumpStep:
        wanted = {each.name: seconds(each.duration) for each in app.profile_args.profiles}

        def files() -> DumpFiles:
            for name, duration in (wanted or {"heap": 0.0, "goroutine": 0.0}).items():
                length = duration or profiles.DEFAULT_SECONDS
                yield name, [profiles.profile(name, length, self._context.is_active)]

        return DumpStep(f"{_HERE}/{APP}", files)

    def _defaults(self) -> DumpFiles:
        yield "cluster-defaults.json", [_json(self._defaults_now())]

    def _defaults_now(self) -> object:
        reply = self._sources.pps.GetClusterDefaults(pps_pb2.GetClusterDefaultsRequest())
        return json.loads(reply.cluster_defaults_json or "{}")


def _shown(content: DumpContent, hide: SecretRedaction, active: Callable[[], bool]) -> Iterator[str | bytes]:
    for piece in content:
        _check(active)
        yield hide(piece) if isinstance(piece, str) else piece


def _check(active: Callable[[], bool]) -> None:
    if not active():
        raise PachError("the time for the dump was over")


def _directory(pipeline: debug_pb2.Pipeline) -> str:
    return f"pipelines/{_part(pipeline.project)}/{_part(pipeline.name)}"


def _part(name: str) -> str:
    """A name that a request gave, as one component of a path."""
    return name.replace("/", "_") if name.strip(".") else "_"


def _binary() -> DumpFiles:
    yield "binary", [packed(server_facts.program_files())]


def _script(script: debug_pb2.Starlark) -> DumpStep:
    def refuse() -> DumpFiles:
        raise Unimplemented("localpachd is not on Kubernetes and runs no Starlark scripts")

    return DumpStep(f"starlark/{_part(script.builtin or script.literal.name)}", refuse)


def _documents(messages: Iterable[Message]) -> Iterator[str]:
    return (f"{json_format.MessageToJson(each, ensure_ascii=False)}\n" for each in messages)


def _json(value: object) -> str:
    return f"{json.dumps(value, indent=2)}\n"
