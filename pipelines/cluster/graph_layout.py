"""The layers of a directed graph, for pictures of it: each node below those that it reads, with few lines that cross.
Pure functions of names; knows neither pipelines nor drawings."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

LayoutEdge = tuple[str, str]
"""A line from a node to one that reads it."""

LayoutPosition = tuple[int, int]
"""A layer, counted from the top, and a place in it, from the left."""

_SWEEPS = 8


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """A layout. `nodes`: the names of each layer, in order, "" for a place where only a line passes. `paths`: the
    places that the line of each edge passes, from its source to its target; an edge against the direction, as in a
    cycle, goes up."""

    nodes: tuple[tuple[str, ...], ...]
    paths: Mapping[LayoutEdge, tuple[LayoutPosition, ...]]

    @property
    def order(self) -> list[str]:
        """The names, layer by layer: each after those that it reads, unless there is a cycle."""
        return [name for layer in self.nodes for name in layer if name]


def compute_layout(names: Iterable[str], edges: Iterable[LayoutEdge]) -> GraphLayout:
    """The layout of these nodes. Edges of unknown nodes, of a node to itself, and repeated ones are left out."""
    known = list(dict.fromkeys(names))
    lines = [each for each in dict.fromkeys(edges) if each[0] in known and each[1] in known and each[0] != each[1]]
    forward = [(b, a) if (a, b) in _against(known, lines) else (a, b) for a, b in lines]
    depth = _depths(known, forward)
    chains = {line: _chain(line, place, depth) for place, line in enumerate(dict.fromkeys(forward))}
    rows = _ordered(known, depth, chains.values())
    places = {item: (layer, place) for layer, row in enumerate(rows) for place, item in enumerate(row)}
    paths = {}
    for line, turned in zip(lines, forward, strict=True):
        path = tuple(places[item] for item in chains[turned])
        paths[line] = path if line == turned else path[::-1]
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
            widths = [width(name) for name in layers.nodes[layer]]
            beside = [[middles[each] for each in near.get((layer, place), ())] for place in range(len(widths))]
            means = [sum(each) / len(each) if each else None for each in beside]
            _spread(middles, layer, _filled(means, _offsets(widths, gap)), widths, gap)
    return middles


def _spread(
    middles: dict[LayoutPosition, float], layer: int, wanted: Sequence[float], widths: Sequence[float], gap: float
) -> None:
    """Sets the middles of a layer as near to the wanted ones as they can be without changing their order: places that
    would overlap are put side by side around the mean of what they want."""
    groups: list[tuple[list[int], float]] = []
    offsets = _offsets(widths, gap)
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


def _offsets(widths: Sequence[float], gap: float) -> list[float]:
    """The middles of items side by side, from that of the first."""
    offsets = [0.0]
    for before, after in pairwise(widths):
        offsets.append(offsets[-1] + (before + after) / 2 + gap)
    return offsets


def _filled(wanted: Sequence[float | None], offsets: Sequence[float]) -> list[float]:
    """The wanted middles; items without one are to be side by side with the nearest that has one."""
    known = [place for place, x in enumerate(wanted) if x is not None]
    found = []
    for place, x in enumerate(wanted):
        nearest = min(known, key=partial(_distance, place), default=place)
        found.append((wanted[nearest] or 0.0) + offsets[place] - offsets[nearest] if x is None else x)
    return found


def _distance(place: int, other: int) -> int:
    return abs(place - other)


_Item = str | tuple[int, int]
"""A node, or the passage of a line, by its number, through a layer."""


def _against(names: Sequence[str], edges: Sequence[LayoutEdge]) -> set[LayoutEdge]:
    """The edges that close a cycle when the graph is walked from its first nodes."""
    below: dict[str, list[str]] = {name: [] for name in names}
    for source, target in edges:
        below[source].append(target)
    found: set[LayoutEdge] = set()
    done: set[str] = set()
    for start in names:
        path: dict[str, int] = {}
        stack = [] if start in done else [start]
        while stack:
            name = stack[-1]
            place = path.setdefault(name, 0)
            if place == len(below[name]):
                stack.pop()
                path.pop(name)
                done.add(name)
                continue
            path[name] += 1
            target = below[name][place]
            if target in path:
                found.add((name, target))
            elif target not in done:
                stack.append(target)
    return found


def _depths(names: Sequence[str], edges: Sequence[LayoutEdge]) -> dict[str, int]:
    """The layer of each node: one below the lowest of those that it reads; a node that reads nothing is directly above
    the highest of its readers."""
    depth = dict.fromkeys(names, 0)
    for _ in names:
        changed = False
        for source, target in edges:
            if depth[target] <= depth[source]:
                depth[target] = depth[source] + 1
                changed = True
        if not changed:
            break
    reading = {target for _, target in edges}
    for name in names:
        readers = [depth[target] for source, target in edges if source == name]
        if name not in reading and readers:
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
