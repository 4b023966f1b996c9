"""The graph as a flowchart of Mermaid, which GitHub, GitLab and many wikis draw. Pure."""

from collections.abc import Iterable

from pipelines.cluster import graph_text
from pipelines.cluster.pipeline_graph import GraphEdge, GraphNode, PipelineGraph

_STYLES = {
    "success": ("success", "#2da44e"), "failure": ("failure", "#d1242f"), "crashing": ("failure", "#d1242f"),
    "killed": ("failure", "#d1242f"), "unrunnable": ("failure", "#d1242f"), "restarting": ("failure", "#d1242f"),
    "running": ("running", "#bf8700"), "starting": ("running", "#bf8700"), "created": ("running", "#bf8700"),
    "finishing": ("running", "#bf8700"), "egressing": ("running", "#bf8700"), "waiting": ("waiting", "#8250df"),
}  # fmt: skip
"""The class of a state, and the colour of its border, which is visible on dark and on light paper."""

_ENTITIES = {'"': "#quot;", "#": "#35;", "<": "#lt;", ">": "#gt;", "`": "#96;", "&": "#amp;"}


def render(graph: PipelineGraph) -> str:
    """The text of the flowchart."""
    ids = {node.name: f"n{number}" for number, node in enumerate(graph.nodes)}
    lines = ["flowchart TD"]
    lines += [f"  {ids[node.name]}{_shape(node)}{_class(node)}" for node in graph.nodes]
    lines += [f"  {ids[edge.source]} {_arrow(edge)} {ids[edge.target]}" for edge in graph.edges]
    used = dict(_STYLES[node.state] for node in graph.nodes if node.state in _STYLES)
    lines += [f"  classDef {name} stroke:{colour},stroke-width:2px" for name, colour in sorted(used.items())]
    return "\n".join(lines) + "\n"


def _shape(node: GraphNode) -> str:
    words = (node.name, graph_text.state(node), graph_text.datums(node), graph_text.effort(node))
    label = "<br>".join(map(_escaped, filter(None, words)))
    before, after = ("[(", ")]") if node.kind in ("repo", "cron") else ("([", "])") if node.kind == "service" else "[]"
    return f'{before}"{label}"{after}'


def _class(node: GraphNode) -> str:
    return f":::{_STYLES[node.state][0]}" if node.state in _STYLES else ""


def _arrow(edge: GraphEdge) -> str:
    words = ", ".join(_words(edge))
    return ("-.->" if edge.lazy else "-->") + (f"|{words}|" if words else "")


def _words(edge: GraphEdge) -> Iterable[str]:
    if edge.combined:
        yield edge.combined
    if edge.lazy:
        yield "lazy"


def _escaped(text: str) -> str:
    return "".join(_ENTITIES.get(character, character) for character in text)
