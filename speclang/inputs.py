"""The tree of a pipeline's inputs, in protojson with names in snake_case, and the names in it.

The name of an input is a directory below /pfs. Members of a union never meet in a datum and may share a name; an input
beside the union may not have one of theirs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from speclang.field_paths import FieldPath

LEAVES = ("pfs", "cron")
COMBINATIONS = ("cross", "union", "join", "group")

_RESERVED = ("out", ".env")
"""Names below /pfs that Pachyderm uses itself."""


class InputNameRule(Enum):
    """A rule of inputs' names."""

    MISSING = auto()
    RESERVED = auto()
    REPEATED = auto()


@dataclass(frozen=True, slots=True)
class InputNameFault:
    """A rule that an input's name breaks, and where the input is below the tree's top."""

    rule: InputNameRule
    name: str
    at: FieldPath


def nodes(tree: Mapping[str, Any], at: FieldPath = ()) -> Iterator[tuple[FieldPath, Mapping[str, Any]]]:
    """Every node of a tree and where it is, parents before their children."""
    yield at, tree
    for kind in COMBINATIONS:
        for place, member in enumerate(tree.get(kind) or ()):
            yield from nodes(member, (*at, kind, place))


def name_faults(tree: Mapping[str, Any], at: FieldPath = ()) -> Iterator[InputNameFault]:
    """The rules that the names in a tree break, in the order in which Pachyderm looks. A pfs input without a name has
    its repo's."""
    yield from _faults(tree, at, set())


def _faults(node: Mapping[str, Any], at: FieldPath, taken: set[str]) -> Iterator[InputNameFault]:
    for kind in LEAVES:
        leaf = node.get(kind)
        if leaf is not None:
            name = str(leaf.get("name") or (leaf.get("repo") if kind == "pfs" else "") or "")
            yield from (InputNameFault(rule, name, (*at, kind)) for rule in _broken(name, taken))
            taken.add(name)
            return
    offered: set[str] = set()
    for kind in COMBINATIONS:
        for place, member in enumerate(node.get(kind) or ()):
            names = set(taken) if kind == "union" else taken
            yield from _faults(member, (*at, kind, place), names)
            offered |= names
    taken |= offered


def _broken(name: str, taken: set[str]) -> Iterator[InputNameRule]:
    if not name:
        yield InputNameRule.MISSING
    elif name in _RESERVED:
        yield InputNameRule.RESERVED
    elif name in taken:
        yield InputNameRule.REPEATED
