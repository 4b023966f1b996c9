"""The graph of repos and pipelines on the terminal: a line for each, below those that it reads, with lanes between them
on the left and facts on the right. Contacts no server itself."""

import textwrap
from collections.abc import Sequence

from rich.text import Text

from pipelines.cluster import graph_lanes
from pipelines.cluster.graph_lanes import ASCII, NODE, GraphLine
from pipelines.cluster.graph_layout import compute_layout
from pipelines.cluster.graph_text import CLASSES, clipped, duration, short, state
from pipelines.cluster.pipeline_graph import GraphNode, PipelineGraph
from pipelines.commands.kit.terminal import console
from stages.datum.text_format import visible

USUAL = 80
"""The width of a graph that is written to a file."""

NONE = "no pipelines yet: `lookalike deploy` creates them"

COLUMNS = ("done", "skipped", "failed", "total", "time", "GPUs")
_NARROWEST_NAME = 8
_MOST_LINES = 3
"""Most lines of a reason."""

_REPO, _HOLLOW = "◆", "○"
_STYLES = {"good": "green", "busy": "yellow", "wait": "magenta", "bad": "red"}
_BOLD = ("running", "failure", "crashing")
_UNKNOWN = "–"


def show(graph: PipelineGraph) -> None:
    """Prints the graph, as wide as the terminal."""
    console.print(on_terminal(graph))


def on_terminal(graph: PipelineGraph, height: int | None = None) -> Text:
    """The graph for the terminal, in ASCII where it has no other characters. Of one that is higher than `height` lines
    the notes below the names are left out."""
    if not graph.nodes:
        return Text(NONE)
    plain = not console.encoding.lower().startswith("utf")
    text = render_text(graph, console.width, plain)
    if height is not None and text.plain.count("\n") >= height - 1:
        return render_text(graph, console.width, plain, notes=False)
    return text


def render_text(graph: PipelineGraph, width: int, plain: bool = False, notes: bool = True) -> Text:
    """The graph in lines of at most `width` columns. plain: in ASCII alone. notes: with the inputs and the reasons."""
    nodes = {node.name: node for node in graph.nodes}
    edges = [(edge.source, edge.target) for edge in graph.edges]
    lines = graph_lanes.render_lines(compute_layout(nodes, edges).order, edges)
    rows = [(line, nodes[line.name], _cells(nodes[line.name])) for line in lines]
    sizes = [max(len(name), *(len(cells[place]) for *_, cells in rows)) for place, name in enumerate(COLUMNS)]
    states = max([len("state"), *(len(state(node)) for _, node, _ in rows)])
    beside = max((len(line.at) for line in lines), default=0) + 1
    names = max([4, *(len(visible(node.name)) for node in graph.nodes)])
    names = max(min(names, width - beside - 2 - states - sum(sizes) - len(sizes)), _NARROWEST_NAME)
    text = Text(no_wrap=True, overflow="crop")
    heads = " ".join(f"{name:>{size}}" for name, size in zip(COLUMNS, sizes, strict=True))
    text.append(f"{'':{beside}}{'name':{names}}  {'state':{states}} {heads}".rstrip() + "\n", "bold")
    for line, node, cells in rows:
        _row(text, line, node, names, states, [f"{cell:>{size}}" for cell, size in zip(cells, sizes, strict=True)])
        if notes:
            _below(text, line, node, width)
    text.right_crop(1)
    rows_of_text = text.split("\n")
    for row in rows_of_text:
        row.truncate(width)
    whole = Text("\n", no_wrap=True, overflow="crop").join(rows_of_text)
    return Text.from_markup(whole.markup.translate(ASCII), overflow="crop") if plain else whole


def _row(text: Text, line: GraphLine, node: GraphNode, names: int, states: int, cells: Sequence[str]) -> None:
    before, _, after = line.at.partition(NODE)
    style = _style(node)
    text.append(before, "dim")
    text.append({"repo": _REPO, "cron": _HOLLOW}.get(node.kind, NODE), style or "cyan")
    text.append(f"{after} ", "dim")
    text.append(clipped(visible(node.name), names).ljust(names), "bold" if node.kind != "repo" else "")
    text.append(f"  {state(node):{states}} ", style)
    text.append(" ".join(cells).rstrip() + "\n")


def _below(text: Text, line: GraphLine, node: GraphNode, width: int) -> None:
    """The inputs of a pipeline, where they are more than a line on the left can say, and the reason of its state."""
    left = f"{line.below} "
    if any(sign in node.inputs for sign in " @"):
        text.append(left + clipped(visible(f"= {node.inputs}"), width - len(left)) + "\n", "dim")
    if node.reason:
        wrapped = textwrap.wrap(
            visible(node.reason), max(width - len(left), 20), max_lines=_MOST_LINES, placeholder=" …"
        )
        for each in wrapped:
            text.append(left, "dim")
            text.append(f"{each}\n", _style(node))


def _style(node: GraphNode) -> str:
    style = _STYLES.get(CLASSES.get(node.state, ""), "")
    return f"bold {style}" if node.state in _BOLD else style


def _cells(node: GraphNode) -> list[str]:
    """The cells of COLUMNS."""
    job = node.job
    gpus = "" if not node.gpus else f"{_UNKNOWN if node.held is None else node.held}/{node.gpus}"
    if job is None:
        return [""] * 5 + [gpus]
    numbers = (job.processed, job.skipped, job.failed, job.total)
    counts = [short(each) if job.started else "" for each in numbers]
    return [*counts, "" if job.seconds is None else duration(job.seconds), gpus]
