"""Opt-in pipelines on a server: a group deployed where the library's other pipelines run, and deleted again.

Overlays and `--set` of the last deployment are not asked for again: a group's pipelines take over from the deployed
pipelines of the same image, which the server knows, everything that is not as the specifications have it.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.analysis.measurement import inherited_settings
from pipelines.checks import suite
from pipelines.client.deployment import deployment
from pipelines.client.deployment.deployment import DeploymentResult
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.cluster import preflight
from pipelines.errors import LookalikeError
from pipelines.specifications import drafts, optional_specs, pipeline_specs, specs_directory
from pipelines.specifications.drafts import SpecDraft, SpecPatch
from pipelines.specifications.findings import FlawLevel
from pipelines.specifications.pipeline_specs import PipelineSpec, repos_read
from stages.classify.training import training_parameters
from stages.classify.training.training_parameters import TrainingParameters

LABELS = "labels"
LABELS_FILE = "/labels.csv"
LABELS_HEADER = b"source,label,name\n"
"""The columns of a file of labels. A cross with an empty repo has no datums, so it gets a file with these alone."""

PARAMETERS = "parameters"
DEFAULT_RUN = "linear"

_FIRST_FILES = {
    LABELS: (LABELS_FILE, LABELS_HEADER),
    PARAMETERS: (
        f"/{DEFAULT_RUN}{training_parameters.SUFFIX}",
        training_parameters.format_parameters(TrainingParameters(DEFAULT_RUN)),
    ),
}
"""The path and the content of the file that a repo for a cross gets while it is empty."""


@dataclass(frozen=True, slots=True)
class ComparisonWork:
    """The work of comparing all pictures with each other: their number, that of the segments, and the length of a
    vector."""

    pictures: int
    segments: int
    dimension: int


def expected(connection: Connection) -> ComparisonWork:
    """The work for the pictures that are in the index now."""

    def described() -> list[Any]:
        index = Repository(connection, "index").good()
        return [] if index is None else [json.loads(content) for _, content in index.read_all("/*/index.json")]

    read = connection.retry(described)
    dimension = max((int(each["dimension"]) for each in read), default=0)
    return ComparisonWork(sum(int(each["count"]) for each in read), len(read), dimension)


def check(connection: Connection, group: str) -> None:
    """Raises LookalikeError if a group's pipelines cannot be deployed since what they read is not written."""
    there = connection.retry(ProjectJobs(connection).pipelines)
    _must_read(
        [spec for spec in optional_specs.required_specs(specs_directory.current(), group) if spec.name not in there],
        there,
    )


def deploy(
    connection: Connection,
    group: str,
    report: Callable[[DeploymentResult], None] = lambda _: None,
    patch: SpecPatch | None = None,
    again: bool = False,
) -> Sequence[str]:
    """Creates the pipelines that a group needs and that are missing, and the repos that they read; returns the ids of
    the commits whose jobs compute their first output. Empty repos of labels and of parameters that they read get a
    first file: labels that name no picture, and the default parameters.

    patch: changes the group's own specifications, and with it those that are there are updated. again: these are
    started again, even if nothing else has changed.

    Raises LookalikeError, and creates nothing, if the pipelines that they read are missing or of another version, or
    if a check or the server's cluster stands in the way.
    """
    there = ProjectJobs(connection).pipelines()
    needed = optional_specs.required_specs(specs_directory.current(), group)
    own_ones = {spec.name for spec in needed if optional_specs.group(spec.path) == group}
    changed = own_ones if patch is not None else set()
    missing = [spec for spec in needed if spec.name in changed or spec.name not in there]
    if not missing:
        return []
    _must_read(missing, there)
    base = {
        draft.name: draft for draft in drafts.find([specs_directory.current()]) if not optional_specs.group(draft.path)
    }
    found = [inherited_settings.as_deployed(drafts.read(spec.path), base, there) for spec in missing]
    found = [draft.patched(patch) if patch is not None and draft.name in own_ones else draft for draft in found]
    _check(connection, found)
    for repo in _FIRST_FILES:
        if any(repo in spec.repos for spec in missing):
            ensure_filled(connection, repo)
    names = [spec.name for spec in missing if again and spec.name in own_ones]
    done = deployment.deploy(connection, [draft.spec() for draft in found], report, names)
    jobs = (ProjectJobs(connection).newest(each.name) for each in done if each.kind == "pipeline")
    return list(dict.fromkeys(job.id for job in jobs if job is not None))


def remove(
    connection: Connection, group: str, upstream: bool = True, kept: Collection[str] = ()
) -> list[DeploymentResult]:
    """Deletes a group's pipelines and, unless told otherwise, those of other groups that only they read, but none that
    is to be `kept`; returns the outcome for each that is there: deleted, or kept for the pipelines that read it."""
    there = ProjectJobs(connection).pipelines()
    needed = [
        spec.name
        for spec in reversed(optional_specs.required_specs(specs_directory.current(), group))
        if spec.name in there and spec.name not in kept and (upstream or optional_specs.group(spec.path) == group)
    ]
    done = []
    for name in needed:
        readers = sorted(other for other, info in there.items() if name in repos_read(info.details.input))
        if readers:
            done.append(DeploymentResult("pipeline", name, f"kept for {' and '.join(readers)}"))
            continue
        connection.client.delete_pipeline(name, project_name=connection.project)
        del there[name]
        done.append(DeploymentResult("pipeline", name, "deleted"))
    return done


def ensure_filled(connection: Connection, repo: str) -> str:
    """Makes the repo of labels or of parameters, and gives it its first file if it is empty; returns the commit of that
    file, "" if there are files."""
    deployment.make_repo(connection, repo)
    repository = Repository(connection, repo)
    if connection.retry(repository.exists, "/"):
        return ""
    return repository.write([PutFile(*_FIRST_FILES[repo])])


def _must_read(specs: Sequence[PipelineSpec], there: Mapping[str, Any]) -> None:
    """Raises LookalikeError unless all that the specifications read is written."""
    known = {spec.name for spec in specs} | there.keys() | pipeline_specs.SOURCES.keys()
    for spec in specs:
        for repo in sorted(spec.repos - known):
            raise LookalikeError(f"{spec.name} reads {repo}, which is not deployed: run `lookalike deploy` first")


def _check(connection: Connection, found: Sequence[SpecDraft]) -> None:
    report = suite.check(found, (), None, drafts.neighbours(found)).of(FlawLevel.ERROR)
    report = report.with_more(preflight.find_obstacles(connection, found)).of(FlawLevel.ERROR)
    for finding in report.findings:
        fix = f": {finding.flaw.fix}" if finding.flaw.fix else ""
        raise LookalikeError(f"{finding.pipeline or 'the pipelines'}: {finding.place}: {finding.flaw.why}{fix}")
