"""The layers of a directed graph without cycles, for pictures of it: each node below those that it reads, with few
lines that cross. Pure functions of names; knows neither pipelines nor drawings."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import pairwise

LayoutEdge = tuple[str, str]
"""A line from a node to one that reads it."""

LayoutPosition = tuple[int, int]
"""A layer, counted from the top, and a place in it, from the left."""

_SWEEPS = 8


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """A layout. `nodes`: the names of each layer, in order, "" for a place where only a line passes. `paths`: the
    places that the line of each edge passes, from its source down to its target."""

    nodes: tuple[tuple[str, ...], ...]
    paths: Mapping[LayoutEdge, tuple[LayoutPosition, ...]]

    @property
    def order(self) -> list[str]:
        """The names, layer by layer: each after those that it reads."""
        return [name for layer in self.nodes for name in layer if name]


def compute_layout(names: Iterable[str], edges: Iterable[LayoutEdge]) -> GraphLayout:
    """The layout of these nodes. Raises graphlib.CycleError for a cycle, which Pachyderm refuses to make."""
    known, lines = list(names), list(dict.fromkeys(edges))
    depth = _depths(known, lines)
    chains = {line: _chain(line, number, depth) for number, line in enumerate(lines)}
    rows = _ordered(known, depth, chains.values())
    places = {item: (layer, place) for layer, row in enumerate(rows) for place, item in enumerate(row)}
    paths = {line: tuple(places[item] for item in chain) for line, chain in chains.items()}
    return GraphLayout(tuple(tuple(item if isinstance(item, str) else "" for item in row) for row in rows), paths)


def columns(layers: GraphLayout, width: Callable[[str], float], gap: float) -> dict[LayoutPosition, float]:
    """The middle of every place, from left to right: each near the mean of its neighbours' above and below, and as far
    from its neighbours beside it as their widths and the gap demand. width: of a node by its name, "" for a passage."""
    near: dict[LayoutPosition, list[LayoutPosition]] = {}
    for path in layers.paths.values():
        for a, b in pairwise(path):
            near.setdefault(a, []).append(b)
            near.setdefault(b, []).append(a)
    middles: dict[LayoutPosition, float] = {}
    for layer, names in enumerate(layers.nodes):
        _spread(middles, layer, [0.0] * len(names), [width(name) for name in names], gap)
    for sweep in range(4 * _SWEEPS):
        order = range(len(layers.nodes)) if sweep % 2 else range(len(layers.nodes) - 1, -1, -1)
        for layer in order:
            places = [(layer, place) for place in range(len(layers.nodes[layer]))]
            beside = [[middles[each] for each in near.get(place, (place,))] for place in places]
            means = [sum(each) / len(each) for each in beside]
            _spread(middles, layer, means, [width(name) for name in layers.nodes[layer]], gap)
    return middles


def _spread(
    middles: dict[LayoutPosition, float], layer: int, wanted: Sequence[float], widths: Sequence[float], gap: float
) -> None:
    """Sets the middles of a layer as near to the wanted ones as they can be without changing their order: places that
    would overlap are put side by side around the mean of what they want."""
    groups: list[tuple[list[int], float]] = []
    offsets = [0.0]
    for before, after in pairwise(widths):
        offsets.append(offsets[-1] + (before + after) / 2 + gap)
    for place, x in enumerate(wanted):
        members, start = [place], x - offsets[place]
        while groups and groups[-1][1] > start:
            others, other = groups.pop()
            start = (start * len(members) + other * len(others)) / (len(members) + len(others))
            members = others + members
        groups.append((members, start))
    for members, start in groups:
        for place in members:
            middles[layer, place] = start + offsets[place]


_Item = str | tuple[int, int]
"""A node, or the passage of a line, by its number, through a layer."""


def _depths(names: Sequence[str], edges: Sequence[LayoutEdge]) -> dict[str, int]:
    """The layer of each node: one below the lowest of those that it reads; a node that reads nothing is directly above
    the highest of its readers."""
    reads: dict[str, list[str]] = {name: [] for name in names}
    for source, target in edges:
        reads[target].append(source)
    depth: dict[str, int] = {}
    for name in TopologicalSorter(reads).static_order():
        depth[name] = max((depth[source] + 1 for source in reads[name]), default=0)
    for name in names:
        readers = [depth[target] for source, target in edges if source == name]
        if readers and not reads[name]:
            depth[name] = min(readers) - 1
    return depth


def _chain(edge: LayoutEdge, number: int, depth: Mapping[str, int]) -> list[_Item]:
    """The items of an edge's line, one in each layer."""
    source, target = edge
    return [source, *((number, layer) for layer in range(depth[source] + 1, depth[target])), target]


def _ordered(names: Sequence[str], depth: Mapping[str, int], chains: Iterable[Sequence[_Item]]) -> list[list[_Item]]:
    """The items of each layer, in the best order of a few sweeps: each item at the mean of its neighbours' places."""
    rows: list[list[_Item]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name in names:
        rows[depth[name]].append(name)
    above: dict[_Item, list[_Item]] = {}
    below: dict[_Item, list[_Item]] = {}
    for chain in chains:
        for item in chain[1:-1]:
            assert isinstance(item, tuple)
            rows[item[1]].append(item)
        for upper, lower in pairwise(chain):
            above.setdefault(lower, []).append(upper)
            below.setdefault(upper, []).append(lower)
    best, fewest = [list(row) for row in rows], _crossings(rows, below)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        beside = above if down else below
        layers = range(1, len(rows)) if down else range(len(rows) - 2, -1, -1)
        for layer in layers:
            places = {item: place for place, item in enumerate(rows[layer - 1 if down else layer + 1])}
            rows[layer] = _by_mean(rows[layer], beside, places)
        crossings = _crossings(rows, below)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    return best


def _by_mean(row: Sequence[_Item], beside: Mapping[_Item, Sequence[_Item]], places: Mapping[_Item, int]) -> list[_Item]:
    means = {}
    for place, item in enumerate(row):
        near = [places[each] for each in beside.get(item, ())]
        means[item] = sum(near) / len(near) if near else float(place)
    return sorted(row, key=means.__getitem__)


def _crossings(rows: Sequence[Sequence[_Item]], below: Mapping[_Item, Sequence[_Item]]) -> int:
    """The number of pairs of lines that cross between two layers."""
    found = 0
    for upper, lower in pairwise(rows):
        places = {item: place for place, item in enumerate(lower)}
        ends = [(start, places[each]) for start, item in enumerate(upper) for each in below.get(item, ())]
        found += sum(a < c and b > d for a, b in ends for c, d in ends)
    return found
