"""Opt-in pipelines on a server: a group deployed where the library's other pipelines run, and deleted again.

Overlays and `--set` of the last deployment are not asked for again: a group's pipelines take over from the deployed
pipelines of the same image, which the server knows, everything that is not as the specifications have it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pipelines.checks import suite
from pipelines.client.deploying import deployment, retired
from pipelines.client.deploying.deployment import Deployed
from pipelines.client.jobs.jobs import Jobs
from pipelines.client.repository import Put, Repository
from pipelines.client.server.connection import Connection
from pipelines.client.server.outages import outlasting
from pipelines.cluster import preflight
from pipelines.errors import LookalikeError
from pipelines.explaining.measuring import takeover
from pipelines.specifications import drafts, optional, own, reading
from pipelines.specifications.drafts import Draft, Patch
from pipelines.specifications.findings import Level
from pipelines.specifications.reading import Spec, leaves
from stages.classify.training import parameters
from stages.classify.training.parameters import Parameters

LABELS = "labels"
LABELS_FILE = "/labels.csv"
LABELS_HEADER = b"source,label,name\n"
"""The columns of a file of labels. A cross with an empty repo has no datums, so it gets a file with these alone."""

PARAMETERS = "parameters"
DEFAULT_RUN = "linear"

_FIRST_FILES = {
    LABELS: (LABELS_FILE, LABELS_HEADER),
    PARAMETERS: (f"/{DEFAULT_RUN}{parameters.SUFFIX}", parameters.written(Parameters(DEFAULT_RUN))),
}
"""The path and the content of the file that a repo for a cross gets while it is empty."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The work of comparing all pictures with each other: their number, that of the segments, and the length of a
    vector."""

    pictures: int
    segments: int
    dimension: int


def expected(connection: Connection) -> Expected:
    """The work for the pictures that are in the index now."""

    def described() -> list[Any]:
        index = Repository(connection, "index").good()
        return [] if index is None else [json.loads(content) for _, content in index.read_all("/*/index.json")]

    read = outlasting(connection, described)
    dimension = max((int(each["dimension"]) for each in read), default=0)
    return Expected(sum(int(each["count"]) for each in read), len(read), dimension)


def deployed(connection: Connection, group: str) -> bool:
    """Whether all pipelines that a group needs are there."""
    there = outlasting(connection, Jobs(connection).pipelines)
    return all(spec.name in there for spec in optional.needed(own.current(), group))


def check(connection: Connection, group: str) -> None:
    """Raises LookalikeError if a group's pipelines cannot be deployed since what they read is not written."""
    there = outlasting(connection, Jobs(connection).pipelines)
    _must_read([spec for spec in optional.needed(own.current(), group) if spec.name not in there], there)


def deploy(
    connection: Connection,
    group: str,
    report: Callable[[Deployed], None] = lambda _: None,
    patch: Patch | None = None,
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
    there = Jobs(connection).pipelines()
    needed = optional.needed(own.current(), group)
    own_ones = {spec.name for spec in needed if optional.group(spec.path) == group}
    changed = own_ones if patch is not None else set()
    missing = [spec for spec in needed if spec.name in changed or spec.name not in there]
    if not missing:
        return []
    _must_read(missing, there)
    base = {draft.name: draft for draft in drafts.find([own.current()]) if not optional.group(draft.path)}
    found = [takeover.as_deployed(drafts.read(spec.path), base, there) for spec in missing]
    found = [draft.patched(patch) if patch is not None and draft.name in own_ones else draft for draft in found]
    _check(connection, found)
    for repo in _FIRST_FILES:
        if any(repo in spec.repos for spec in missing):
            ensure_filled(connection, repo)
    names = [spec.name for spec in missing if again and spec.name in own_ones]
    done = deployment.deploy(connection, [draft.spec() for draft in found], report, names)
    jobs = (Jobs(connection).newest(each.name) for each in done if each.kind == "pipeline")
    return list(dict.fromkeys(job.id for job in jobs if job is not None))


def remove(connection: Connection, group: str, upstream: bool = True) -> list[Deployed]:
    """Deletes a group's pipelines, with retired ones that these have replaced, and, unless told otherwise, those of
    other groups that only they read; returns the outcome for each that is there: deleted, or kept for the pipelines
    that read it."""
    there = Jobs(connection).pipelines()
    needed = [
        spec.name
        for spec in reversed(optional.needed(own.current(), group))
        if spec.name in there and (upstream or optional.group(spec.path) == group)
    ]
    replaced = [name for name in retired.found(there) if retired.SUCCESSORS[name] in needed and name not in needed]
    done = []
    for name in (*replaced, *needed):
        readers = sorted(other for other, info in there.items() if name in _reads(info))
        if readers:
            done.append(Deployed("pipeline", name, f"kept for {' and '.join(readers)}"))
            continue
        connection.client.delete_pipeline(name, project_name=connection.project)
        del there[name]
        done.append(Deployed("pipeline", name, "deleted"))
    return done


def ensure_filled(connection: Connection, repo: str) -> str:
    """Makes the repo of labels or of parameters, and gives it its first file if it is empty; returns the commit of that
    file, "" if there are files."""
    deployment.make_repo(connection, repo)
    repository = Repository(connection, repo)
    if outlasting(connection, partial(repository.exists, "/")):
        return ""
    return repository.write([Put(*_FIRST_FILES[repo])])


def _reads(info: Any) -> set[str]:
    return {leaf.repo for leaf in leaves(info.details.input)}


def _must_read(specs: Sequence[Spec], there: Mapping[str, Any]) -> None:
    """Raises LookalikeError unless all that the specifications read is written."""
    known = {spec.name for spec in specs} | there.keys() | reading.SOURCES.keys()
    for spec in specs:
        for repo in sorted(spec.repos - known):
            raise LookalikeError(f"{spec.name} reads {repo}, which is not deployed: run `lookalike deploy` first")


def _check(connection: Connection, found: Sequence[Draft]) -> None:
    report = suite.check(found, (), None, drafts.neighbours(found)).of(Level.ERROR)
    report = report.with_more(preflight.look(connection, found, connection.namespace)).of(Level.ERROR)
    for finding in report.findings:
        fix = f": {finding.flaw.fix}" if finding.flaw.fix else ""
        raise LookalikeError(f"{finding.pipeline or 'the pipelines'}: {finding.place}: {finding.flaw.why}{fix}")
