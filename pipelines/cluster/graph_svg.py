"""The graph as an SVG picture: boxes in layers and curves between them. It holds all that it needs, and follows the
light or dark scheme of its reader. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from pipelines.cluster import graph_text
from pipelines.cluster.graph_layout import GraphLayout, LayoutPosition, columns, compute_layout
from pipelines.cluster.graph_text import CLASSES, SIGNS
from pipelines.cluster.pipeline_graph import GraphEdge, GraphNode, PipelineGraph
from stages.report import markup

_WIDE, _HIGH, _LOW = 220, 74, 46
"""A box, and the height of that of a repo, in pixels."""
_PASSAGE = 26
_ACROSS, _DOWN = 26, 62
"""The gaps between boxes and between layers."""
_MARGIN = 28
_NAME, _WORDS = 22, 32
"""Most characters of a name and of a line in a box."""

SvgPoint = tuple[float, float]


def render(graph: PipelineGraph, title: str) -> str:
    """The document."""
    nodes = {node.name: node for node in graph.nodes}
    layout = compute_layout(nodes, [(edge.source, edge.target) for edge in graph.edges])
    middles = columns(layout, lambda name: _WIDE if name else _PASSAGE, _ACROSS)
    left = min((x - (_WIDE if name else _PASSAGE) / 2 for x, name in _each(layout, middles)), default=0.0)
    spots = {place: (x - left + _MARGIN, _top(place[0])) for place, x in middles.items()}
    ends = [x + (_WIDE if name else _PASSAGE) / 2 for x, name in _each(layout, middles)]
    where = {name: spots[row, at] for row, names in enumerate(layout.nodes) for at, name in enumerate(names) if name}
    return markup.fill(
        "graph.svg",
        title=title,
        width=round(max([2 * _MARGIN + _WIDE + 240.0, *(end - left + 2 * _MARGIN for end in ends)])),
        height=_top(len(layout.nodes)) - _DOWN + 2 * _MARGIN,
        margin=_MARGIN,
        box_width=_WIDE,
        lines=_lines(graph.edges, layout, spots, nodes),
        boxes=[(node, *where[node.name], _height(node), CLASSES.get(node.state, "")) for node in graph.nodes],
        signs=[(sign, *where[node.name]) for node in graph.nodes if (sign := _sign(node, graph.edges))],
        legend=_legend(graph),
        words=graph_text,
        most_letters=_WORDS,
        most_of_a_name=_NAME,
    )


def _top(layer: int) -> float:
    return _MARGIN + layer * (_HIGH + _DOWN)


def _each(layout: GraphLayout, middles: Mapping[LayoutPosition, float]) -> Iterator[tuple[float, str]]:
    return ((x, layout.nodes[layer][place]) for (layer, place), x in middles.items())


def _lines(
    edges: Sequence[GraphEdge],
    layout: GraphLayout,
    spots: Mapping[LayoutPosition, SvgPoint],
    nodes: Mapping[str, GraphNode],
) -> Iterator[tuple[bool, str]]:
    """Each edge's line: whether it is lazy, and its path."""
    starts = _ports({pair: (pair[0], spots[path[1]][0]) for pair, path in layout.paths.items()})
    ends = _ports({pair: (pair[1], spots[path[-2]][0]) for pair, path in layout.paths.items()})
    for edge in edges:
        pair = edge.source, edge.target
        (x, y), *passages, (last_x, last_y) = (spots[place] for place in layout.paths[pair])
        first = x + starts[pair], y + _height(nodes[edge.source])
        yield edge.lazy, _curve(first, passages, (last_x + ends[pair], last_y - 3))


def _ports(lines: Mapping[tuple[str, str], tuple[str, float]]) -> dict[tuple[str, str], float]:
    """How far from the middle of a box each of its lines begins or ends, by the places that they lead to."""
    found: dict[tuple[str, str], float] = {}
    for box in {name for name, _ in lines.values()}:
        own = sorted((x, pair) for pair, (name, x) in lines.items() if name == box)
        step = min(28.0, _WIDE * 0.8 / len(own))
        found |= {pair: (place - (len(own) - 1) / 2) * step for place, (_, pair) in enumerate(own)}
    return found


def _curve(first: SvgPoint, passages: Sequence[SvgPoint], final: SvgPoint) -> str:
    x, y = first
    parts = [f"M{x:.1f} {y:.1f}"]
    stops = [stop for px, py in passages for stop in ((px, py), (px, py + _HIGH))]
    for to_x, to_y in (*stops, final):
        if to_x == x:
            parts.append(f"L{to_x:.1f} {to_y:.1f}")
        else:
            bend = (to_y - y) / 2
            parts.append(f"C{x:.1f} {y + bend:.1f} {to_x:.1f} {to_y - bend:.1f} {to_x:.1f} {to_y:.1f}")
        x, y = to_x, to_y
    return "".join(parts)


def _height(node: GraphNode) -> int:
    return _LOW if node.kind in ("repo", "cron") else _HIGH


def _sign(node: GraphNode, edges: Sequence[GraphEdge]) -> str:
    """The way in which a pipeline's inputs are combined, where their lines meet."""
    kinds = dict.fromkeys(edge.combined for edge in edges if edge.target == node.name and edge.combined)
    return SIGNS[next(iter(kinds))] if len(kinds) == 1 else "…" if kinds else ""


def _legend(graph: PipelineGraph) -> str:
    kinds = dict.fromkeys(edge.combined for edge in graph.edges if edge.combined)
    words = [f"{SIGNS[kind]} {kind}" for kind in SIGNS if kind in kinds]
    words += ["dashed: lazy"] if any(edge.lazy for edge in graph.edges) else []
    return "   ".join(words)
