"""A pipeline's input: its tree, and the order and defaults that Pachyderm gives it. Reads no files."""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from localpachd.errors import PachError
from localpachd.pfs.pfs_entities import USER, Branch, Repo
from speclang.inputs import COMBINATIONS
from speclang.paths import clean


@dataclass(frozen=True, slots=True)
class PfsInput:
    """Files of one branch, one datum for each match of `glob`. `trigger` is protojson with snake_case names."""

    name: str
    project: str
    repo: str
    repo_type: str = USER
    branch: str = "master"
    glob: str = "/"
    join_on: str = ""
    outer_join: bool = False
    group_by: str = ""
    lazy: bool = False
    empty_files: bool = False
    s3: bool = False
    trigger: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class CronInput:
    """Ticks of a schedule, one file each, in a repo of their own. `start` is RFC 3339."""

    name: str
    project: str
    repo: str
    spec: str
    overwrite: bool = False
    start: str = ""

    def as_pfs(self) -> PfsInput:
        """The input of the ticks' files: every top-level file of the repo."""
        return PfsInput(name=self.name, project=self.project, repo=self.repo, glob="/*")


@dataclass(frozen=True, slots=True)
class _Combination:
    members: tuple["Input", ...]


class CrossInput(_Combination):
    """Every combination of one datum of each member."""


class UnionInput(_Combination):
    """The datums of all members."""


class JoinInput(_Combination):
    """The combinations of one file of each member with equal `join_on`."""


class GroupInput(_Combination):
    """One datum for all files with equal `group_by`."""


Input = PfsInput | CronInput | CrossInput | UnionInput | JoinInput | GroupInput

_BUILD: dict[str, Callable[[tuple[Input, ...]], Input]] = {
    "cross": CrossInput,
    "union": UnionInput,
    "join": JoinInput,
    "group": GroupInput,
}


def leaves(tree: Input | None) -> Iterator[PfsInput | CronInput]:
    """The pfs and cron inputs, left to right."""
    if tree is None:
        return
    if isinstance(tree, PfsInput | CronInput):
        yield tree
        return
    for member in tree.members:
        yield from leaves(member)


def branches(tree: Input | None) -> tuple[Branch, ...]:
    """The branches that the input reads, each once, left to right: a pipeline's provenance without its spec branch."""
    found: dict[Branch, None] = {}
    for leaf in leaves(tree):
        pfs = leaf if isinstance(leaf, PfsInput) else leaf.as_pfs()
        found[Branch(Repo(pfs.project, pfs.repo, pfs.repo_type), pfs.branch)] = None
    return tuple(found)


def visit(node: Mapping[str, Any]) -> Iterator[Any]:
    """Every node of the tree, children before their parent."""
    for kind in COMBINATIONS:
        for member in node.get(kind, ()):
            yield from visit(member)
    yield node


def with_defaults(raw: Mapping[str, Any], pipeline: str, project: str, now: str) -> dict[str, Any]:
    """A copy of a protojson input (snake_case names) with its members sorted and every default filled in.

    Members are sorted by the name their first pfs leaf was *given*, so unnamed ones keep their order ahead of the
    others. `now` (RFC 3339) is where a cron schedule without `start` begins.
    """
    tree: dict[str, Any] = copy.deepcopy(dict(raw))
    for node in visit(tree):
        for kind in COMBINATIONS:
            if kind in node:
                node[kind].sort(key=_sort_name)
    triggered: dict[str, int] = {}
    for node in visit(tree):
        if "pfs" in node:
            _fill_pfs(node["pfs"], pipeline, project, triggered)
        if "cron" in node:
            _fill_cron(node["cron"], pipeline, project, now)
    return tree


def parse(raw: Mapping[str, Any]) -> Input:
    """The tree of a protojson input after defaults were filled in and `validation.check_input` accepted it."""
    if "pfs" in raw:
        return PfsInput(**{key: value for key, value in raw["pfs"].items() if key != "commit"})
    if "cron" in raw:
        return CronInput(**{key: value for key, value in raw["cron"].items() if key != "commit"})
    for kind, build in _BUILD.items():
        if kind in raw:
            return build(tuple(parse(member) for member in raw[kind]))
    raise PachError("no input set")


def at_commit(raw: Mapping[str, Any], commit: str) -> dict[str, Any]:
    """A copy in which every leaf names `commit`, as a job shows its input."""
    tree: dict[str, Any] = copy.deepcopy(dict(raw))
    for node in visit(tree):
        for kind in ("pfs", "cron"):
            if kind in node:
                node[kind]["commit"] = commit
    return tree


def _sort_name(node: Mapping[str, Any]) -> str:
    if "pfs" in node:
        return str(node["pfs"].get("name", ""))
    for kind in ("cross", "join", "group", "union"):
        if node.get(kind):
            return _sort_name(node[kind][0])
    return ""


def _fill_pfs(pfs: dict[str, Any], pipeline: str, project: str, triggered: dict[str, int]) -> None:
    repo = pfs.setdefault("repo", "")
    if not pfs.get("branch"):
        pfs["branch"] = "master"
        if "trigger" in pfs:
            triggered[repo] = triggered.get(repo, 0) + 1
            pfs["branch"] = f"{pipeline}-trigger-{triggered[repo]}"
            pfs["trigger"].setdefault("branch", "master")
    for key, default in (("project", project), ("name", repo), ("repo_type", USER), ("glob", "")):
        if not pfs.get(key):
            pfs[key] = default
    if pfs["glob"]:
        pfs["glob"] = clean(pfs["glob"])


def _fill_cron(cron: dict[str, Any], pipeline: str, project: str, now: str) -> None:
    name = cron.setdefault("name", "")
    for key, default in (("project", project), ("repo", f"{pipeline}_{name}"), ("spec", ""), ("start", now)):
        if not cron.get(key):
            cron[key] = default
