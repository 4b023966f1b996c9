"""A graph as lines of text: a line for each node, with lanes beside them that lead from a node to its readers. Pure
functions of names; any graph has such a drawing, however many lines cross."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NODE = "●"
"""The sign of a node among its lanes."""

ASCII = str.maketrans("●◆○│├┤┼╰╯┴─×–…", "*#o|+++`'+-x-.")
"""The same drawings for terminals without these characters."""


@dataclass(frozen=True, slots=True)
class GraphLine:
    """A node: its name, the lanes in its line, and the lanes that go on below it. All are of one width."""

    name: str
    at: str
    below: str


def render_lines(order: Sequence[str], edges: Sequence[tuple[str, str]]) -> list[GraphLine]:
    """The lines of the nodes, in an order in which each comes after those that it reads."""
    rank = {name: place for place, name in enumerate(order)}
    reads: dict[str, list[str]] = {name: [] for name in order}
    last: dict[str, int] = {}
    for source, target in edges:
        reads[target].append(source)
        last[source] = max(last.get(source, -1), rank[target])
    lanes: list[str | None] = []
    lines = []
    for place, name in enumerate(order):
        inputs = {lanes.index(source) for source in reads[name]}
        ending = {lane for lane in inputs if last[lanes[lane] or ""] == place}
        free = [lane for lane, source in enumerate(lanes) if source is None]
        here = min(ending) if ending else free[0] if free else len(lanes)
        if here == len(lanes):
            lanes.append(None)
        before = list(lanes)
        for lane in ending:
            lanes[lane] = None
        lanes[here] = name if name in last else None
        at = _at(before, lanes, here, inputs)
        below = "".join("│ " if source else "  " for source in lanes)
        while lanes and lanes[-1] is None:
            lanes.pop()
        lines.append((name, at, below))
    width = max((len(at) for _, at, _ in lines), default=0)
    return [GraphLine(name, at.ljust(width), below.ljust(width)) for name, at, below in lines]


def _at(before: Sequence[str | None], after: Sequence[str | None], here: int, inputs: set[int]) -> str:
    """The lanes in the line of the node in lane `here`, which the lanes `inputs` lead to."""
    first, final = min({here, *inputs}), max({here, *inputs})
    found = ""
    for lane in range(len(before)):
        within = first <= lane <= final
        if lane == here:
            sign = NODE
        elif lane in inputs:
            sign = _JOINTS[(after[lane] is not None, lane == first, lane == final)]
        elif before[lane] is not None:
            sign = "│"
        else:
            sign = "─" if within else " "
        found += sign + ("─" if first <= lane < final else " ")
    return found


_JOINTS: Mapping[tuple[bool, bool, bool], str] = {
    (True, True, False): "├", (True, False, True): "┤", (True, False, False): "┼",
    (False, True, False): "╰", (False, False, True): "╯", (False, False, False): "┴",
}  # fmt: skip
"""The sign where a lane leads to the node of a line: whether it goes on, and whether it is the first or last one."""
