"""Opt-in pipelines on a server: a group deployed where the library's other pipelines run, and deleted again.

Overlays and `--set` of the last deployment are not asked for again: a group's pipelines take over from the deployed
pipelines of the same image, which the server knows, everything that is not as the specifications have it.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pipelines.analysis.measurement import inherited_settings
from pipelines.checks import suite
from pipelines.client.deployment import deployment
from pipelines.client.deployment.deployment import DeploymentResult
from pipelines.client.deployment.first_files import ATTRIBUTES
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.cluster import preflight
from pipelines.errors import LookalikeError
from pipelines.specifications import drafts, optional_specs, overlays, pipeline_specs, specs_directory
from pipelines.specifications.drafts import SpecDraft, SpecPatch
from pipelines.specifications.findings import FlawLevel
from pipelines.specifications.overlays import Overlay
from pipelines.specifications.pipeline_specs import PipelineSpec, repos_read
from stages.record.attribute_schema import DIRECTORY

ANNOTATIONS = "annotations"
"""The group, and its pipeline, that gives attributes to searches and labels to trainings."""


MAP = "map"
"""The group, and its pipeline, that places pictures on the map."""


@dataclass(frozen=True, slots=True)
class ComparisonWork:
    """The work of comparing all pictures with each other: their number, that of the segments, and that of the parts of
    the library that are compared, a sixteenth each."""

    pictures: int
    segments: int
    parts: int


def expected(connection: Connection) -> ComparisonWork:
    """The work for the pictures that are in the index now."""

    def counted() -> dict[str, int]:
        index = Repository(connection, "index").good()
        files = () if index is None else index.read_all("/*/index.json")
        return {path.split("/")[1]: int(json.loads(content)["count"]) for path, content in files}

    read = connection.retry(counted)
    return ComparisonWork(sum(read.values()), len(read), len({name[0] for name in read}))


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
    patches: Mapping[str, SpecPatch] = MappingProxyType({}),
    again: bool = False,
) -> Sequence[str]:
    """Creates the pipelines that a group needs and that are missing, and the repos that they read; returns the ids of
    the commits whose jobs compute their first output. Those that read one of these where it is deployed, as its overlay
    says, read it from now on.

    patches: change specifications of the group, by name, which are then updated where they are there. again: these
    are started again, even if nothing else has changed.

    Raises LookalikeError, and creates nothing, if the pipelines that they read are missing or of another version, or
    if a check or the server's cluster stands in the way.
    """
    there = ProjectJobs(connection).pipelines()
    needed = optional_specs.required_specs(specs_directory.current(), group)
    missing = [spec for spec in needed if spec.name in patches or spec.name not in there]
    if not missing:
        return []
    _must_read(missing, there)
    base = _usual()
    found = [inherited_settings.as_deployed(drafts.read(spec.path), base, there) for spec in missing]
    found = [draft.patched(patches[draft.name]) if draft.name in patches else draft for draft in found]
    _check(connection, found)
    names = [spec.name for spec in missing if again and spec.name in patches]
    done = deployment.deploy(connection, [draft.spec() for draft in found], report, names)
    extended = _with_inputs(connection, overlays.implied({spec.name for spec in missing}), base, there)
    for each in extended:
        report(each)
    done += extended
    jobs = (ProjectJobs(connection).newest(each.name) for each in done if each.kind == "pipeline")
    return list(dict.fromkeys(job.id for job in jobs if job is not None))


def _with_inputs(
    connection: Connection, on_top: Sequence[Overlay], base: Mapping[str, SpecDraft], there: Mapping[str, Any]
) -> list[DeploymentResult]:
    """Gives the deployed pipelines that overlays name the input that they have with them."""
    return [
        deployment.change_input(connection, there[name], overlay.apply(base[name]).document["input"])
        for overlay in on_top
        for name in overlay.pipelines
        if name in there
    ]


def remove(
    connection: Connection, group: str, upstream: bool = True, kept: Collection[str] = ()
) -> list[DeploymentResult]:
    """Deletes a group's pipelines and, unless told otherwise, those of other groups that only they read, but none that
    is to be `kept`; returns the outcome for each that is there: deleted, or kept for the pipelines that read it. Those
    that read it only where it is deployed read it no more."""
    there = ProjectJobs(connection).pipelines()
    base = _usual()
    if group != ANNOTATIONS and connection.retry(Repository(connection, ATTRIBUTES).exists, f"/{DIRECTORY}/"):
        kept = {*kept, ANNOTATIONS}  # searches see people's tables by it
    needed = [
        spec.name
        for spec in reversed(optional_specs.required_specs(specs_directory.current(), group))
        if spec.name in there and spec.name not in kept and (upstream or optional_specs.group(spec.path) == group)
    ]
    done = []
    for name in needed:
        extended = {each for overlay in overlays.implied([name]) for each in overlay.pipelines}
        readers = sorted(other for other, info in there.items() if name in repos_read(info.details.input))
        if others := [each for each in readers if each not in extended]:
            done.append(DeploymentResult("pipeline", name, f"kept for {' and '.join(others)}"))
            continue
        done += [deployment.change_input(connection, there[each], base[each].document["input"]) for each in readers]
        connection.client.delete_pipeline(name, project_name=connection.project)
        del there[name]
        done.append(DeploymentResult("pipeline", name, "deleted"))
    return done


def _usual() -> dict[str, SpecDraft]:
    """The specifications that every library has, by name."""
    found = drafts.find([specs_directory.current()])
    return {draft.name: draft for draft in found if not optional_specs.group(draft.path)}


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
