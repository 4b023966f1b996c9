"""Deployment: the repos and pipelines of the specifications created or updated, and only those that differ."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf import json_format
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.client import branches, commit_owner
from pipelines.client.deployment import image_sizes, part_sizes
from pipelines.client.deployment.first_files import FIRST_FILES
from pipelines.client.deployment.input_changes import stopped_for_update
from pipelines.client.jobs.jobs import Job, ProjectJobs
from pipelines.client.pipeline_owner import ANNOTATION
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.client.server.grpc_errors import suppress_not_found
from pipelines.client.transactions import transaction
from pipelines.errors import LookalikeError
from pipelines.specifications.pipeline_specs import SOURCES, PipelineSpec, deployed_request, sources

DEPLOYED_BY = "lookalike/deployed-by"
"""The pod annotation that names who deployed a version of a pipeline, and the command: the commits of specifications
have no descriptions."""

WRITTEN = "lookalike/written"
"""The pod annotation that holds the specification as it was in its file, before overlays, settings and pushed sizes:
what runs differs from it by the choices of this library, which an upgrade keeps."""

UPGRADE = "lookalike/upgrade"
"""The pod annotation that holds the way back from the upgrade that the pipeline had last."""

OWN_ANNOTATIONS = (ANNOTATION, DEPLOYED_BY, WRITTEN, UPGRADE, image_sizes.SPECIFIED, part_sizes.SPECIFIED)
"""All pod annotations that are lookalike's own, and no part of a specification."""

_DEFAULT_IMAGE = "ubuntu:20.04"
"""Pachyderm's."""


@dataclass(frozen=True, slots=True)
class DeploymentResult:
    """The outcome for one repo or pipeline: created, updated, updated and reprocessed, or unchanged."""

    kind: str
    name: str
    action: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.action}"


def deploy(
    connection: Connection,
    specs: Sequence[PipelineSpec],
    report: Callable[[DeploymentResult], None] = lambda _: None,
    again: Collection[str] = (),
    keep_size: bool = True,
    keep_parts: bool = True,
) -> list[DeploymentResult]:
    """Creates the repos that no pipeline writes and the pipelines that are missing, and updates those whose
    specification has changed. A pipeline with another command, environment or image is reprocessed: Pachyderm itself
    would keep the old results. So are the pipelines named in `again`. Those that are to read other branches, or are
    crossed with a schedule, are stopped for the moment of their update. keep_size: whether a size of pictures that was
    pushed with a backbone stays, unless the specifications have changed theirs since; keep_parts: the same for the
    sizes of parts and segments that an upgrade set."""
    done: list[DeploymentResult] = []

    def note(kind: str, name: str, action: str) -> None:
        done.append(DeploymentResult(kind, name, action))
        report(done[-1])

    there = ProjectJobs(connection).pipelines()
    for repo in sources(specs):
        if repo not in there:
            note("repo", repo, make_repo(connection, repo))
    for repo in sorted({repo for spec in specs if spec.name not in there for repo in spec.repos & FIRST_FILES.keys()}):
        ensure_filled(connection, repo)
    with stopped_for_update(connection, {spec.name: spec.request().input for spec in specs}, there):
        for spec in specs:
            action = _make_pipeline(connection, spec, there, spec.name in again, keep_size, keep_parts)
            note("pipeline", spec.name, action)
    return done


def make_repo(connection: Connection, repo: str) -> str:
    """Creates a source repo unless it exists; returns "created" or "unchanged"."""
    if has_repo(connection, repo):
        return "unchanged"
    try:
        connection.change(
            lambda: connection.client.create_repo(repo, SOURCES.get(repo, ""), project_name=connection.project),
            lambda: has_repo(connection, repo) or None,
        )
    except grpc.RpcError:
        if not has_repo(connection, repo):
            raise
        return "unchanged"  # another command has created it in this moment
    return "created"


def ensure_filled(connection: Connection, repo: str) -> str:
    """Makes a repo of FIRST_FILES, and gives it its first file if it is empty; returns the commit of that file, "" if
    there are files."""
    make_repo(connection, repo)
    repository = Repository(connection, repo)
    if connection.retry(repository.exists, "/"):
        return ""
    return repository.write([PutFile(*FIRST_FILES[repo])])


def has_repo(connection: Connection, repo: str) -> bool:
    with suppress_not_found():
        connection.retry(lambda: connection.client.inspect_repo(repo, project_name=connection.project))
        return True
    return False


def _make_pipeline(
    connection: Connection, spec: PipelineSpec, there: Mapping[str, Any], again: bool, keep_size: bool, keep_parts: bool
) -> str:
    request, old = request_of(connection, spec), there.get(spec.name)
    action = "created"
    if old is not None:
        pushed = image_sizes.keep_pushed(request, old) if keep_size else None
        sizes = part_sizes.keep_deployed(request, old) if keep_parts else {}
        kept = "" if pushed is None else f", with IMAGE_SIZE={pushed} of `lookalike model push`"
        kept += "".join(f", with {name}={value} of `lookalike upgrade --sizes`" for name, value in sizes.items())
        annotations = old.details.metadata.annotations
        unchanged = annotations.get(ANNOTATION) == spec.fingerprint
        let_go = {image_sizes.SPECIFIED: not keep_size, part_sizes.SPECIFIED: not keep_parts}
        if unchanged and not again and not any(goes and mark in annotations for mark, goes in let_go.items()):
            return f"unchanged{kept}"
        request.update = True
        request.reprocess = again or has_other_code(request, old)
        if UPGRADE in annotations:
            request.metadata.annotations[UPGRADE] = annotations[UPGRADE]
        action = f"updated{', reprocessing everything' if request.reprocess else ''}{kept}"
    with refusals_of(spec.path):
        _send(connection, request, old)
    return action


def change_input(connection: Connection, info: Any, tree: Mapping[str, Any]) -> DeploymentResult:
    """Has a deployed pipeline, given as a PipelineInfo with details, read what the `input` of a specification says, and
    changes nothing else of it."""
    request = deployed_request(info)
    request.update = True
    request.input.Clear()
    json_format.ParseDict(dict(tree), request.input)
    request.metadata.annotations[DEPLOYED_BY] = author(connection)
    with refusals_of(info.pipeline.name):
        _send(connection, request, info)
    return DeploymentResult("pipeline", info.pipeline.name, "updated")


def _send(connection: Connection, request: Any, before: Any | None) -> None:
    """Creates a pipeline, or updates the one that was there before: once, also if the server's answer is in doubt."""

    def happened() -> bool | None:
        now = ProjectJobs(connection).pipelines().get(request.pipeline.name)
        if now is None or (before is not None and now.spec_commit.id == before.spec_commit.id):
            return None
        return now.details.metadata.annotations == request.metadata.annotations or None

    connection.change(lambda: connection.client.create_pipeline_from_request(request), happened)


def request_of(connection: Connection, spec: PipelineSpec) -> Any:
    """The CreatePipelineRequest of a specification in the connection's project, with the annotations that say who sends
    it, and what."""
    request = spec.request()
    request.pipeline.project.name = connection.project
    request.metadata.annotations[ANNOTATION] = spec.fingerprint
    request.metadata.annotations[DEPLOYED_BY] = author(connection)
    written = spec.document if spec.written is None else spec.written
    request.metadata.annotations[WRITTEN] = json.dumps(written, sort_keys=True, separators=(",", ":"))
    return request


def has_other_code(request: Any, info: Any) -> bool:
    """Whether a CreatePipelineRequest differs from the deployed pipeline in what determines its output and what
    Pachyderm does not compare."""
    return _code(request.transform) != _code(info.details.transform)


def resize(
    connection: Connection, infos: Sequence[Any], size: int, models: Any | None, obsolete: Sequence[Job], reason: str
) -> str:
    """Has pipelines compute everything again with pictures of that size, moves the repo's master to a commit of a
    backbone for it (None for the present one), and stops jobs of the backbone before, all at once: neither sees a state
    in between, and each pipeline gets one new job. Returns the id of the commit set.

    infos: the pipelines, as PipelineInfos with details. reason: for the stopped jobs.
    """
    with transaction(connection) as begun:
        if models is not None:
            branches.move(connection, models.repo.name, "master", models.id, begun)
        for info in infos:
            request = image_sizes.resized(info, size)
            request.metadata.annotations[DEPLOYED_BY] = author(connection)
            with refusals_of(info.pipeline.name):
                begun.add(connection.pps.CreatePipeline, request)
        for job in obsolete:
            stop = pps_pb2.StopJobRequest(job=connection.job(job.pipeline, job.id), reason=reason)
            begun.add(connection.pps.StopJob, stop)
    return begun.id


def author(connection: Connection) -> str:
    """The user and the command, as `DEPLOYED_BY` has them."""
    user = commit_owner.current_process().user
    return f"{user}: {connection.doing}" if connection.doing else user


@contextmanager
def refusals_of(pipeline: object) -> Iterator[None]:
    """Raises a server's refusal of a pipeline as a LookalikeError that names it."""
    try:
        yield
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.UNAVAILABLE:
            raise
        raise LookalikeError(f"{pipeline}: {error.details()}") from error


def _code(transform: Any) -> tuple[Any, ...]:
    """The parts of a transform that determine its output and that Pachyderm does not compare."""
    image = transform.image or _DEFAULT_IMAGE
    return image, tuple(transform.cmd), tuple(transform.stdin), sorted(transform.env.items())
