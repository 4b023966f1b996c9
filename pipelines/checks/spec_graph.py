"""The graph that specifications make together: unwritten repos, cycles, crosses that stay empty, branches that may not
meet, ports that two services want, and more pipelines than Pachyderm allows."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipelines.checks import inputs
from pipelines.checks.inputs import InputLeaf
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.findings import Finding, Flaw, FlawPlace
from pipelines.specifications.pipeline_specs import SOURCES
from speclang.field_paths import FieldPath

COMMUNITY_PIPELINES = 16
"""The most pipelines of a Pachyderm without an enterprise key, in all of its projects."""

RepoBranch = tuple[str, str]
"""A repo and a branch of it. Projects are left out: specifications of several are not checked against each other."""


@dataclass(frozen=True, slots=True)
class SpecGraph:
    """Specifications by name, the inputs of each, and the branch that each writes."""

    drafts: Mapping[str, SpecDraft]
    leaves: Mapping[str, Sequence[InputLeaf]]

    @classmethod
    def of(cls, drafts: Sequence[SpecDraft]) -> "SpecGraph":
        named = {draft.name: draft for draft in drafts if draft.name}
        return cls(named, {name: inputs.leaves(draft) for name, draft in named.items()})

    def writes(self, name: str) -> str:
        """The branch that a pipeline writes."""
        return str(self.drafts[name].get("output_branch", default="") or "master")

    def upstream(self, name: str) -> set[str]:
        """All pipelines that a pipeline depends on, directly or not."""
        found: set[str] = set()
        waiting = [name]
        while waiting:
            for leaf in self.leaves[waiting.pop()]:
                if leaf.repo in self.drafts and leaf.repo not in found:
                    found.add(leaf.repo)
                    waiting.append(leaf.repo)
        return found


def check(drafts: Sequence[SpecDraft], neighbours: Sequence[SpecDraft] = ()) -> Iterator[Finding]:
    """The flaws that only show when specifications are seen together. `neighbours` complete the graph; they are not
    checked themselves, and a neighbour that specifies one of the same pipelines is ignored."""
    graph = SpecGraph.of([*neighbours, *drafts])
    asked = {draft.name for draft in drafts}
    yield from _check_twice(drafts)
    yield from (each for each in _check_graph(graph) if each.pipeline in asked)
    yield from _check_number(graph)


def _check_graph(graph: SpecGraph) -> Iterator[Finding]:
    for name, draft in graph.drafts.items():
        for leaf in graph.leaves[name]:
            if leaf.at[-1] == "pfs" and leaf.repo:
                yield from (draft.finding(flaw) for flaw in _check_written(leaf, graph))
        yield from (draft.finding(flaw) for flaw in _check_crosses(draft, graph))
    yield from _check_cycles(graph)
    yield from _check_branches(graph)
    yield from _check_ports(graph)


def _check_number(graph: SpecGraph) -> Iterator[Finding]:
    if len(graph.drafts) > COMMUNITY_PIPELINES:
        why = (
            f"these are {len(graph.drafts)} pipelines: without an enterprise key, Pachyderm allows "
            f"{COMMUNITY_PIPELINES}, together with other projects'; 2.12 and newer any number"
        )
        yield Finding(Flaw.note("pipelines", (), why), "", FlawPlace(None))


def _check_ports(graph: SpecGraph) -> Iterator[Finding]:
    """A cluster has each port of its nodes once, and localpachd each port of the machine."""
    first: dict[int, str] = {}
    for name, draft in sorted(graph.drafts.items()):
        for holder in ((), ("spout",)):
            at = (*holder, "service", "external_port")
            if (draft.get(*holder, "service", "type", default="") or "NodePort") != "NodePort":
                continue
            port = int(draft.number(*at))
            other = first.setdefault(port, name) if port else name
            if other != name:
                why = f"{other} has the port {port} already: the second service is not started"
                yield draft.finding(Flaw.error("service", at, why, "write another port"))


def _check_twice(drafts: Sequence[SpecDraft]) -> Iterator[Finding]:
    first: dict[str, SpecDraft] = {}
    for draft in drafts:
        other = first.setdefault(draft.name, draft)
        if draft.name and other is not draft:
            why = f"{other.path} specifies a pipeline of the same name"
            yield draft.finding(Flaw.error("name", ("pipeline", "name"), why, "rename one of them"))


_MOVED = {"production": "lookalike classify promote", "train": "lookalike classify train --now"}
"""The branches that lookalike itself moves, each with the command that does."""


def _check_written(leaf: InputLeaf, graph: SpecGraph) -> Iterator[Flaw]:
    if leaf.repo in graph.drafts:
        writes = graph.writes(leaf.repo)
        if leaf.branch != writes and leaf.branch in _MOVED:
            why = f"it gets commits when `{_MOVED[leaf.branch]}` moves it there, and has none before"
            yield Flaw.note("moved", (*leaf.at, "branch"), why)
        elif leaf.branch != writes and leaf.value.get("trigger") is None:
            why = f"{leaf.repo} writes its branch {writes}: {leaf.branch} only has commits moved there by hand"
            yield Flaw.warning("graph", (*leaf.at, "branch"), why, f'write "{writes}", unless this is intended')
        return
    if leaf.repo in SOURCES or leaf.value.get("repo_type") in ("meta", "spec"):
        return
    near = _near(leaf.repo, graph)
    why = (
        f"nothing writes {leaf.repo}: it is neither a pipeline of these specifications nor one of {', '.join(SOURCES)}"
    )
    if near:
        yield Flaw.error("graph", (*leaf.at, "repo"), why, f"did you mean {near[0]}?")
    elif leaf.at[-3:-2] != ("cross",):  # which has a warning of its own
        yield Flaw.warning("graph", (*leaf.at, "repo"), why, _yourself(leaf.repo))


def _near(repo: str, graph: SpecGraph) -> list[str]:
    """The repo with the most similar name, if there is one."""
    return difflib.get_close_matches(repo, sorted({*graph.drafts, *SOURCES}), n=1, cutoff=0.8)


def _yourself(repo: str) -> str:
    return f"put files into it yourself: `lookalike deploy` creates {repo}, and it stays empty until then"


def _check_crosses(draft: SpecDraft, graph: SpecGraph) -> Iterator[Flaw]:
    """While a member of a cross is empty, the cross has no datum, and jobs silently succeed."""
    for at, node in inputs.nodes(draft):
        for place, member in enumerate(node.get("cross") or ()):
            pfs = member.get("pfs")
            repo = (pfs or {}).get("repo")
            if not repo or repo in graph.drafts:
                continue
            here: FieldPath = (*at, "cross", place, "pfs", "repo")
            why = f"while {repo} is empty, this cross has no datum, and jobs succeed without processing any"
            if repo in SOURCES:
                yield Flaw.note("empty-cross", here, why)
            elif not _near(repo, graph):
                yield Flaw.warning("empty-cross", here, f"nothing writes {repo}, and {why}", _yourself(repo))


def _check_cycles(graph: SpecGraph) -> Iterator[Finding]:
    for name, draft in graph.drafts.items():
        if name in graph.upstream(name):
            cycle = sorted(each for each in graph.upstream(name) if name in graph.upstream(each))
            leaf = next(leaf for leaf in graph.leaves[name] if leaf.repo in cycle)
            why = f"{' and '.join(cycle)} read each other in a cycle" if len(cycle) > 1 else "it reads its own output"
            yield draft.finding(Flaw.error("graph", (*leaf.at, "repo"), why, "remove one of the inputs"))


def _check_branches(graph: SpecGraph) -> Iterator[Finding]:
    """Pachyderm refuses two branches of one repo in one connected graph, however they are connected."""
    for names in _connected(graph):
        seen: dict[str, str] = {name: graph.writes(name) for name in names}
        for name in names:
            for leaf in graph.leaves[name]:
                other = seen.setdefault(leaf.repo, leaf.branch)
                if leaf.repo and other != leaf.branch:
                    why = f"{leaf.branch} and {other} of {leaf.repo} meet in one graph, which Pachyderm refuses"
                    fix = "read the same branch everywhere, or put the other data into a repo of its own"
                    yield graph.drafts[name].finding(Flaw.error("graph", (*leaf.at, "branch"), why, fix))


def _connected(graph: SpecGraph) -> list[list[str]]:
    """The pipelines in groups, each sorted, that are connected through the branches that they read or write."""
    groups: list[tuple[set[str], set[RepoBranch]]] = []
    for name in sorted(graph.drafts):
        branches = {(leaf.repo, leaf.branch) for leaf in graph.leaves[name]} | {(name, graph.writes(name))}
        joined = ({name}, branches)
        for group in [group for group in groups if group[1] & branches]:
            groups.remove(group)
            joined = (joined[0] | group[0], joined[1] | group[1])
        groups.append(joined)
    return [sorted(names) for names, _ in groups]
