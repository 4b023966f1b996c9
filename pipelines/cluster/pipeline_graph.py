"""The graph of a project's repos and pipelines, with the state of each: read from the server, and put together by a
pure function."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.client.jobs.jobs import Job
from pipelines.cluster.gpu_waits import PipelineWait
from pipelines.specifications.pipeline_specs import SOURCES

_TROUBLED = ("failure", "crashing", "restarting")


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A repo that people put files into, a pipeline with its output repo, or a cron input.

    kind: repo, pipeline, service, spout or cron. state: one word for a pipeline: that of its wait, of its job, or its
    own; "" for others. job: the one at work, or the newest. reason: of the state, in words. inputs: those of a pipeline
    as an expression. gpus: those that each worker requests; held: those that its workers hold now, None if that is not
    known. bytes: of a repo's files at most, None if not known.
    """

    name: str
    kind: str
    state: str = ""
    job: Job | None = None
    reason: str = ""
    inputs: str = ""
    gpus: int = 0
    held: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """An input: the repo's node and the pipeline that reads it; whether its files come lazily, and how it is combined
    with the other inputs: "", cross, union, join or group."""

    source: str
    target: str
    lazy: bool
    combined: str


@dataclass(frozen=True, slots=True)
class PipelineGraph:
    """All of it, in the order of names."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]


@dataclass(frozen=True, slots=True)
class ProjectState:
    """What the server says: the pipelines as PipelineInfos with details, the job at work or the newest of each, their
    waits, the GPUs that are held by pipeline (None if not known), and the sizes of repos in bytes."""

    infos: Mapping[str, Any]
    jobs: Mapping[str, Job]
    waits: Mapping[str, PipelineWait]
    held: Mapping[str, int] | None
    sizes: Mapping[str, int]


def graph(project: str, seen: ProjectState) -> PipelineGraph:
    """The graph of a project."""
    edges = [edge for name, info in sorted(seen.infos.items()) for edge in _edges(project, name, info.details.input)]
    nodes = {name: _pipeline(project, info, seen) for name, info in seen.infos.items()}
    crons = {_cron(name, each) for name, info in seen.infos.items() for each in _crons(info.details.input)}
    for repo in {*(SOURCES.keys() & seen.sizes.keys()), *(edge.source for edge in edges)} - nodes.keys():
        nodes[repo] = GraphNode(repo, "cron" if repo in crons else "repo", bytes=seen.sizes.get(repo))
    return PipelineGraph(tuple(nodes[name] for name in sorted(nodes)), tuple(dict.fromkeys(edges)))


def _pipeline(project: str, info: Any, seen: ProjectState) -> GraphNode:
    name = info.pipeline.name
    job, wait = seen.jobs.get(name), seen.waits.get(name)
    own = pps_pb2.PipelineState.Name(info.state).removeprefix("PIPELINE_").lower()
    state = job.state if job is not None else own
    reason = ""
    if own in _TROUBLED:
        state, reason = own, info.reason
    elif info.stopped:
        state = "paused"
    elif job is not None and job.ended and job.state != "success":
        reason = job.reason
    if wait is not None and (job is None or not job.ended or wait.state == "crashing"):
        state, reason = wait.state, wait.text
    gpus = info.details.resource_limits.gpu.number
    return GraphNode(
        name,
        "service" if info.details.HasField("service") else "spout" if info.details.HasField("spout") else "pipeline",
        state,
        job,
        " ".join(reason.split()),
        _expression(project, name, info.details.input),
        gpus,
        None if seen.held is None else seen.held.get(name, 0),
    )


def _edges(project: str, target: str, tree: Any, combined: str = "") -> list[GraphEdge]:
    if tree.HasField("pfs"):
        return [GraphEdge(_repo(project, tree.pfs), target, tree.pfs.lazy, combined)]
    if tree.HasField("cron"):
        return [GraphEdge(_cron(target, tree.cron), target, False, combined)]
    return [
        edge
        for kind in ("cross", "union", "join", "group")
        for member in getattr(tree, kind)
        for edge in _edges(project, target, member, kind)
    ]


def _expression(project: str, target: str, tree: Any) -> str:
    """An input in words: × for a cross, + for a union."""
    if tree.HasField("pfs"):
        branch = "" if tree.pfs.branch in ("", "master") else f"@{tree.pfs.branch}"
        return f"{_repo(project, tree.pfs)}{branch}{' (lazy)' if tree.pfs.lazy else ''}"
    if tree.HasField("cron"):
        return f"{_cron(target, tree.cron)} ({tree.cron.spec})"
    for kind, sign in (("cross", " × "), ("union", " + "), ("join", ", "), ("group", ", ")):
        members = [_expression(project, target, each) for each in getattr(tree, kind)]
        if members:
            return f"{kind} of {sign.join(members)}" if sign == ", " else sign.join(members)
    return ""


def _crons(tree: Any) -> list[Any]:
    found = [tree.cron] if tree.HasField("cron") else []
    return found + [each for member in (*tree.cross, *tree.union, *tree.join, *tree.group) for each in _crons(member)]


def _cron(pipeline: str, cron: Any) -> str:
    return str(cron.repo) or f"{pipeline}_{cron.name}"


def _repo(project: str, leaf: Any) -> str:
    """The name of a repo, with its project if that is another one, and with its type unless that is the usual one."""
    name = leaf.repo if leaf.repo_type in ("", "user") else f"{leaf.repo}.{leaf.repo_type}"
    return name if leaf.project in ("", project) else f"{leaf.project}/{name}"
