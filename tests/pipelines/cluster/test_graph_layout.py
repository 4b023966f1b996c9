"""Layouts of graphs of any form, and their drawings in lanes, which are read back."""

from itertools import pairwise

from hypothesis import given, settings, strategies as st

from pipelines.cluster import graph_lanes
from pipelines.cluster.graph_layout import LayoutEdge, columns, compute_layout
from tests.example_counts import examples

LIBRARY = [
    ("images", "preprocess"), ("preprocess", "features"), ("models", "features"), ("features", "index"),
    ("queries", "preprocess-queries"), ("preprocess-queries", "features-queries"), ("models", "features-queries"),
    ("index", "search"), ("features-queries", "search"), ("features-queries", "render"), ("search", "render"),
]  # fmt: skip

names = st.sampled_from([chr(ord("a") + n) for n in range(12)])
graphs = st.lists(
    st.tuples(names, names).filter(lambda edge: edge[0] != edge[1]).map(lambda edge: (min(edge), max(edge))),
    max_size=30,
)


def nodes_of(edges: list[LayoutEdge]) -> list[str]:
    return sorted({name for edge in edges for name in edge})


def test_the_library_has_a_layer_for_each_step() -> None:
    found = compute_layout(nodes_of(LIBRARY), LIBRARY)
    assert [sorted(filter(None, layer)) for layer in found.nodes] == [
        ["images", "queries"], ["models", "preprocess", "preprocess-queries"], ["features", "features-queries"],
        ["index"], ["search"], ["render"],
    ]  # fmt: skip
    assert [line.at.rstrip() for line in graph_lanes.render_lines(found.order, LIBRARY)] == [
        "●", "│ ●", "● │", "│ │ ●", "│ ● │", "●─│─┤", "│ ●─╯", "● │", "●─┤", "●─╯",
    ]  # fmt: skip


@settings(max_examples=examples(60))
@given(graphs)
def test_every_node_has_one_place_and_every_line_its_way_down(edges: list[LayoutEdge]) -> None:
    nodes = nodes_of(edges)
    found = compute_layout(nodes, edges)
    assert sorted(found.order) == nodes
    assert found.paths.keys() == {*edges}
    for (source, target), path in found.paths.items():
        (first, at), (last, end) = path[0], path[-1]
        assert (found.nodes[first][at], found.nodes[last][end]) == (source, target)
        assert all(found.nodes[layer][place] == "" for layer, place in path[1:-1])
        assert first < last
        assert [layer for layer, _ in path] == list(range(first, last + 1))


@settings(max_examples=examples(60))
@given(graphs)
def test_places_of_a_layer_do_not_overlap(edges: list[LayoutEdge]) -> None:
    found = compute_layout(nodes_of(edges), edges)
    middles = columns(found, lambda name: 10.0 if name else 2.0, 3.0)
    for layer, row in enumerate(found.nodes):
        ends = [(middles[layer, place], 5.0 if name else 1.0) for place, name in enumerate(row)]
        for (x, half), (other, wide) in pairwise(ends):
            assert other - wide - (x + half) >= 3.0 - 1e-6


@settings(max_examples=examples(60))
@given(graphs)
def test_a_drawing_in_lanes_tells_every_line_and_no_other(edges: list[LayoutEdge]) -> None:
    nodes = nodes_of(edges)
    assert read_back(graph_lanes.render_lines(compute_layout(nodes, edges).order, edges)) == set(edges)


def read_back(lines: list[graph_lanes.GraphLine]) -> set[LayoutEdge]:
    """The edges that a drawing shows, followed with the eye from line to line."""
    found: set[LayoutEdge] = set()
    held: dict[int, str] = {}
    for line in lines:
        assert len(line.at) == len(line.below) == len(lines[0].at)
        here = line.at.index(graph_lanes.NODE)
        joined = {here} if here in held else set()
        for way in (-2, 2):
            lane = here
            while 0 <= lane + way < len(line.at) and line.at[lane + way // 2] == "─":
                lane += way
                joined |= {lane} if line.at[lane] in "├┤┼╰╯┴" else set()
        found |= {(held[lane], line.name) for lane in joined}
        below = {lane for lane, sign in enumerate(line.below) if sign == "│"}
        held = {lane: line.name if lane == here else held[lane] for lane in below}
    assert not held
    return found
