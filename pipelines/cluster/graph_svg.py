"""The graph as an SVG picture: boxes in layers and curves between them. It holds all that it needs, and follows the
light or dark scheme of its reader. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from pipelines.cluster import graph_text
from pipelines.cluster.graph_layout import GraphLayout, LayoutPosition, columns, compute_layout
from pipelines.cluster.graph_text import SIGNS, clipped
from pipelines.cluster.pipeline_graph import GraphEdge, GraphNode, PipelineGraph
from stages.datum.text_format import visible

_WIDE, _HIGH, _LOW = 220, 74, 46
"""A box, and the height of that of a repo, in pixels."""
_PASSAGE = 26
_ACROSS, _DOWN = 26, 62
"""The gaps between boxes and between layers."""
_MARGIN = 28
_NAME, _WORDS = 22, 32
"""Most characters of a name and of a line in a box."""

_STYLE = """
  svg { color-scheme: light dark; --paper: #f6f7f9; --card: #ffffff; --ink: #16191d; --muted: #565e68; --edge: #d9dde3;
    --line: #8b949e; --repo: #eaf0fb; --good: #1a7f37; --busy: #b35900; --wait: #8250df; --bad: #cf222e; }
  @media (prefers-color-scheme: dark) { svg { --paper: #101316; --card: #191d22; --ink: #e8eaed; --muted: #a3abb5;
    --edge: #3a424c; --line: #7d8794; --repo: #1c2740; --good: #4ac26b; --busy: #e0a030; --wait: #b392f0;
    --bad: #ff7b72; } }
  .paper { fill: var(--paper); }
  text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
    fill: var(--muted); font-variant-numeric: tabular-nums; }
  .name { font-size: 14px; font-weight: 600; fill: var(--ink); }
  .box { fill: var(--card); stroke: var(--edge); stroke-width: 1.5; }
  .repo .box { fill: var(--repo); }
  .service .box { stroke-dasharray: 1 3; stroke-linecap: round; stroke: var(--line); }
  .good { --state: var(--good); } .busy { --state: var(--busy); } .wait { --state: var(--wait); }
  .bad { --state: var(--bad); }
  .good .box, .busy .box, .wait .box, .bad .box { stroke: var(--state); }
  .dot { fill: var(--state, var(--line)); } .state { fill: var(--state, var(--muted)); font-weight: 600; }
  .line { fill: none; stroke: var(--line); stroke-width: 1.6; } .lazy { stroke-dasharray: 5 4; }
  .head { fill: var(--line); } .sign { fill: var(--paper); stroke: var(--line); stroke-width: 1.2; }
  .mark { font-size: 13px; fill: var(--ink); text-anchor: middle; }
"""

_CLASSES = {
    "success": "good", "running": "busy", "starting": "busy", "created": "busy", "finishing": "busy",
    "egressing": "busy", "waiting": "wait", "failure": "bad", "crashing": "bad", "killed": "bad", "unrunnable": "bad",
    "restarting": "bad",
}  # fmt: skip

SvgPoint = tuple[float, float]


def render(graph: PipelineGraph, title: str) -> str:
    """The document."""
    nodes = {node.name: node for node in graph.nodes}
    layout = compute_layout(nodes, [(edge.source, edge.target) for edge in graph.edges])
    middles = columns(layout, lambda name: _WIDE if name else _PASSAGE, _ACROSS)
    left = min((x - (_WIDE if name else _PASSAGE) / 2 for x, name in _each(layout, middles)), default=0.0)
    spots = {place: (x - left + _MARGIN, _top(place[0])) for place, x in middles.items()}
    ends = [x + (_WIDE if name else _PASSAGE) / 2 for x, name in _each(layout, middles)]
    width = max([2 * _MARGIN + _WIDE + 240.0, *(end - left + 2 * _MARGIN for end in ends)])
    height = _top(len(layout.nodes)) - _DOWN + 2 * _MARGIN
    where = {name: spots[row, at] for row, names in enumerate(layout.nodes) for at, name in enumerate(names) if name}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}">',
        f"<title>{escape(visible(title))}</title>",
        f"<style>{_STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path class="head" d="M0 0 8 4 0 8z"/></marker></defs>',
        '<rect class="paper" width="100%" height="100%" rx="14"/>',
        *_lines(graph.edges, layout, spots, nodes),
        *(part for node in graph.nodes for part in _box(node, *where[node.name])),
        *(part for node in graph.nodes for part in _sign(node, graph.edges, *where[node.name])),
        *_legend(graph, height),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _top(layer: int) -> float:
    return _MARGIN + layer * (_HIGH + _DOWN)


def _each(layout: GraphLayout, middles: Mapping[LayoutPosition, float]) -> Iterator[tuple[float, str]]:
    return ((x, layout.nodes[layer][place]) for (layer, place), x in middles.items())


def _lines(
    edges: Sequence[GraphEdge],
    layout: GraphLayout,
    spots: Mapping[LayoutPosition, SvgPoint],
    nodes: Mapping[str, GraphNode],
) -> Iterator[str]:
    drawable = [edge for edge in edges if (edge.source, edge.target) in layout.paths]
    paths = {(edge.source, edge.target): layout.paths[edge.source, edge.target] for edge in drawable}
    starts = _ports({pair: (pair[0], spots[path[1]][0]) for pair, path in paths.items()})
    ends = _ports({pair: (pair[1], spots[path[-2]][0]) for pair, path in paths.items()})
    for edge in drawable:
        pair = edge.source, edge.target
        path = [spots[place] for place in paths[pair]]
        (x, y), (last_x, last_y) = path[0], path[-1]
        down = y < last_y
        first = x + starts[pair], y + (_height(nodes[edge.source]) if down else 0)
        final = last_x + ends[pair], last_y - 3 if down else last_y + _height(nodes[edge.target]) + 3
        yield (
            f'<path class="line{" lazy" if edge.lazy else ""}" marker-end="url(#head)" '
            f'd="{_curve(first, path[1:-1], final)}"/>'
        )


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
    stops = [stop for px, py in passages for stop in ((px, py), (px, py + _HIGH))] if first[1] < final[1] else []
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


def _box(node: GraphNode, middle: float, top: float) -> Iterator[str]:
    kind = "repo" if node.kind in ("repo", "cron") else node.kind
    high, left = _height(node), middle - _WIDE / 2
    words = (node.name, graph_text.state(node), graph_text.datums(node), graph_text.effort(node), node.reason)
    yield f'<g class="{kind} {_CLASSES.get(node.state, "")}">'
    yield f"<title>{escape(visible(', '.join(filter(None, words))))}</title>"
    corner = _LOW // 2 if high == _LOW else 10
    yield f'<rect class="box" x="{left:.1f}" y="{top:.1f}" width="{_WIDE}" height="{high}" rx="{corner}"/>'
    if high == _LOW:
        yield _text("name", middle, top + 20, clipped(node.name, _NAME), "middle")
        yield _text("", middle, top + 36, clipped(f"repo {graph_text.size(node)}".strip(), _WORDS), "middle")
    else:
        yield f'<circle class="dot" cx="{left + 17:.1f}" cy="{top + 18:.1f}" r="4.5"/>'
        yield _text("name", left + 29, top + 23, clipped(node.name, _NAME))
        yield _text("state", left + 14, top + 43, clipped(node.state, 11))
        yield _text("", left + _WIDE - 12, top + 43, clipped(graph_text.effort(node), 19), "end")
        yield _text("", left + 14, top + 61, clipped(graph_text.datums(node) or node.reason, _WORDS))
    yield "</g>"


def _sign(node: GraphNode, edges: Sequence[GraphEdge], middle: float, top: float) -> Iterator[str]:
    """The way in which a pipeline's inputs are combined, where their lines meet."""
    kinds = dict.fromkeys(edge.combined for edge in edges if edge.target == node.name and edge.combined)
    sign = SIGNS[next(iter(kinds))] if len(kinds) == 1 else "…" if kinds else ""
    if sign:
        yield f'<circle class="sign" cx="{middle:.1f}" cy="{top - 16:.1f}" r="9"/>'
        yield f'<text class="mark" x="{middle:.1f}" y="{top - 11.5:.1f}">{sign}</text>'


def _legend(graph: PipelineGraph, height: float) -> Iterator[str]:
    kinds = dict.fromkeys(edge.combined for edge in graph.edges if edge.combined)
    words = [f"{SIGNS[kind]} {kind}" for kind in SIGNS if kind in kinds]
    words += ["dashed: lazy"] if any(edge.lazy for edge in graph.edges) else []
    if words:
        yield _text("", _MARGIN, height - 16, "   ".join(words))


def _text(kind: str, x: float, y: float, words: str, anchor: str = "start") -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" xml:space="preserve">'
        f"{escape(visible(words))}</text>"
    )
