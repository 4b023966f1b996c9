"""How many datums the inputs of a specification give with the files at hand: a preview of a job."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from pipelines.checks import inputs
from pipelines.checks.inputs import InputLeaf
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.findings import Flaw
from speclang.field_paths import FieldPath
from speclang.globs import Glob, GlobError, substitute
from speclang.inputs import COMBINATIONS
from stages.datum.text_format import counted

SECONDS_EACH = 0.005
"""The overhead of a datum in one worker: it is hashed, looked up and recorded."""

_MANY = 100_000

GlobPaths = Callable[[Glob], Iterator[str]]
"""The paths of a repo that a pattern may match. Each begins with a slash; directories have none at the end."""


@dataclass(frozen=True, slots=True)
class _Match:
    """A match in one input: its keys for joins and groups."""

    join: str
    group: str


def listed(directory: Path) -> GlobPaths:
    """The paths that a repo would have if the contents of a directory were put into it."""

    def paths(glob: Glob) -> Iterator[str]:
        yield "/"
        yield from _below(directory, "", glob.depth)

    return paths


def check(draft: SpecDraft, repos: Mapping[str, GlobPaths]) -> Iterator[Flaw]:
    """How many datums the inputs give, if all repos that they read are among `repos`."""
    read = inputs.leaves(draft)
    if not read or not any(leaf.repo in repos for leaf in read):
        return
    try:
        matches = {leaf.at: _matches(leaf, repos[leaf.repo]) for leaf in read if leaf.repo in repos}
        for leaf in read:
            if leaf.at in matches:
                yield from _said(leaf, len(matches[leaf.at]), len(read) == 1)
        if len(read) > 1 and len(matches) == len(read):
            number = _count(("input",), draft.get("input"), matches)
            if number is not None:
                yield _total(("input",), number, "together these give ")
    except GlobError:
        return


def _said(leaf: InputLeaf, number: int, only: bool) -> Iterator[Flaw]:
    at = (*leaf.at, "glob")
    if not number:
        why = f"matches nothing in {leaf.repo}: jobs succeed without processing any datum"
        yield Flaw.warning(
            "datums", at, why, 'correct it: "/*" makes a datum of each top-level entry, "/" one datum of everything'
        )
    elif only:
        yield _total(at, number, "this gives ")
    else:
        yield Flaw.note("datums", at, f"matches {number:,} in {leaf.repo}")


def _total(at: FieldPath, number: int, said: str) -> Flaw:
    datums = counted(number, "datum", "datums")
    seconds = number * SECONDS_EACH
    cost = f", {seconds / 60:,.0f} minutes of bookkeeping in one worker" if seconds >= 60 else ""
    if number < _MANY:
        return Flaw.note("datums", at, f"{said}{datums}{cost}")
    fix = "put files into directories or archives and match those, or use more workers"
    return Flaw.warning("datums", at, f"{said}{datums}{cost}", fix)


def _matches(leaf: InputLeaf, paths: GlobPaths) -> list[_Match]:
    glob = Glob(str(leaf.value.get("glob") or "/"))
    found = []
    for path in paths(glob):
        captures = glob.match(path)
        if captures is not None:
            keys = (substitute(str(leaf.value.get(key) or ""), captures) for key in ("join_on", "group_by"))
            found.append(_Match(*keys))
    return found


def _count(at: FieldPath, node: Mapping[str, Any], matches: Mapping[FieldPath, list[_Match]]) -> int | None:
    """The number of datums of a node in the tree of inputs; None if it joins or groups anything but repos."""
    kind = next((kind for kind in (*COMBINATIONS, "pfs") if node.get(kind)), "pfs")
    if kind == "pfs":
        return len(matches[(*at, "pfs")])
    members = [((*at, kind, place), member) for place, member in enumerate(node[kind])]
    if kind in ("cross", "union"):
        counts = [_count(where, member, matches) for where, member in members]
        known = [count for count in counts if count is not None]
        if len(known) < len(counts):
            return None
        return prod(known) if kind == "cross" else sum(known)
    if not all(member.get("pfs") for _, member in members):
        return None
    found = [(member["pfs"], matches[(*where, "pfs")]) for where, member in members]
    if kind == "group":
        return len({match.group for _, each in found for match in each})
    return _joined(found)


def _joined(members: list[tuple[Mapping[str, Any], list[_Match]]]) -> int:
    """The number of datums of a join: all combinations for a key that every member has, those of the outer members for
    another."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * len(members))
    for place, (_, each) in enumerate(members):
        for match in each:
            counts[match.join][place] += 1
    outer = [bool(value.get("outer_join")) for value, _ in members]
    total = 0
    for found in counts.values():
        if all(found):
            total += prod(found)
        else:
            kept = [number for number, wanted in zip(found, outer, strict=True) if number and wanted]
            total += prod(kept) if kept else 0
    return total


def _below(directory: Path, prefix: str, deepest: int | None) -> Iterator[str]:
    """The files and non-empty directories below a directory, down to a number of slashes."""
    for entry in sorted(directory.iterdir()):
        path = f"{prefix}/{entry.name}"
        if entry.is_symlink() or not entry.is_dir():
            yield path
        elif next(entry.iterdir(), None) is not None:
            yield path
            if deepest is None or path.count("/") < deepest:
                yield from _below(entry, path, deepest)
