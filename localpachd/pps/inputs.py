"""A pipeline's input: its tree of values, and the order, defaults and checks Pachyderm gives it. Reads no files."""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from localpachd.errors import PachError
from localpachd.pfs.values import USER, Branch, Repo
from localpachd.storage import globs

COMBINATIONS = ("cross", "union", "join", "group")


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
        """The ticks as what they are when datums are formed: every top-level file of the repo."""
        return PfsInput(name=self.name, project=self.project, repo=self.repo, glob="/*")


@dataclass(frozen=True, slots=True)
class Cross:
    """Every combination of one datum of each member."""

    members: tuple["Input", ...]


@dataclass(frozen=True, slots=True)
class Union:
    """The datums of all members."""

    members: tuple["Input", ...]


@dataclass(frozen=True, slots=True)
class Join:
    """The combinations of one file of each member with equal `join_on`."""

    members: tuple["Input", ...]


@dataclass(frozen=True, slots=True)
class Group:
    """One datum for all files with equal `group_by`."""

    members: tuple["Input", ...]


Input = PfsInput | CronInput | Cross | Union | Join | Group

_BUILD: dict[str, Callable[[tuple[Input, ...]], Input]] = {
    "cross": Cross,
    "union": Union,
    "join": Join,
    "group": Group,
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
    """The branches the input reads, each once, left to right: a pipeline's provenance apart from its spec branch."""
    found: dict[Branch, None] = {}
    for leaf in leaves(tree):
        pfs = leaf if isinstance(leaf, PfsInput) else leaf.as_pfs()
        found[Branch(Repo(pfs.project, pfs.repo, pfs.repo_type), pfs.branch)] = None
    return tuple(found)


def with_defaults(raw: Mapping[str, Any], pipeline: str, project: str, now: str) -> dict[str, Any]:
    """A copy of a protojson input (snake_case names) with its members sorted and every default filled in.

    Members are sorted by the name their first pfs leaf was *given*, so unnamed ones keep their order ahead of the
    others. `now` (RFC 3339) is where a cron schedule without `start` begins.
    """
    tree: dict[str, Any] = copy.deepcopy(dict(raw))
    for node in _visit(tree):
        for kind in COMBINATIONS:
            if kind in node:
                node[kind].sort(key=_sort_name)
    triggered: dict[str, int] = {}
    for node in _visit(tree):
        if "pfs" in node:
            _fill_pfs(node["pfs"], pipeline, project, triggered)
        if "cron" in node:
            _fill_cron(node["cron"], pipeline, project, now)
    return tree


def validate(raw: Mapping[str, Any]) -> None:
    """Refuses an input, defaults filled in, that Pachyderm refuses, with its text."""
    _check_names(set(), raw)
    for node in _visit(raw):
        kinds = [kind for kind in ("pfs", "cron", *COMBINATIONS) if kind in node]
        if "pfs" in node:
            _check_pfs(node["pfs"])
        if len(kinds) > 1:
            raise PachError("multiple input types set")
        if not kinds:
            raise PachError("no input set")
        kind = kinds[0]
        if kind in ("join", "group", "union") and any(leaf.get("pfs", {}).get("s3") for leaf in _visit(node)):
            raise PachError(f"S3 inputs in {kind} expressions are not supported")


def parse(raw: Mapping[str, Any]) -> Input:
    """The tree of a protojson input that has its defaults and passed `validate`."""
    if "pfs" in raw:
        return PfsInput(**{key: value for key, value in raw["pfs"].items() if key != "commit"})
    if "cron" in raw:
        return CronInput(**{key: value for key, value in raw["cron"].items() if key != "commit"})
    for kind, build in _BUILD.items():
        if kind in raw:
            return build(tuple(parse(member) for member in raw[kind]))
    raise PachError("no input set")


def at_commit(raw: Mapping[str, Any], commit: str) -> dict[str, Any]:
    """A copy in which every leaf names `commit`: how a job shows its input."""
    tree: dict[str, Any] = copy.deepcopy(dict(raw))
    for node in _visit(tree):
        for kind in ("pfs", "cron"):
            if kind in node:
                node[kind]["commit"] = commit
    return tree


def _visit(node: Mapping[str, Any]) -> Iterator[Any]:
    """Every node of the tree, children before their parent."""
    for kind in COMBINATIONS:
        for member in node.get(kind, ()):
            yield from _visit(member)
    yield node


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
        pfs["glob"] = globs.clean(pfs["glob"])


def _fill_cron(cron: dict[str, Any], pipeline: str, project: str, now: str) -> None:
    name = cron.setdefault("name", "")
    for key, default in (("project", project), ("repo", f"{pipeline}_{name}"), ("spec", ""), ("start", now)):
        if not cron.get(key):
            cron[key] = default


def _check_names(taken: set[str], node: Mapping[str, Any]) -> None:
    for kind in ("pfs", "cron"):
        if kind in node:
            _check_name(taken, str(node[kind]["name"]))
            return
    if "union" in node:
        # Members of a union may share a name; what is crossed with the union may not use any of theirs.
        offered: set[str] = set()
        for member in node["union"]:
            names = set(taken)
            _check_names(names, member)
            offered |= names
        taken |= offered
        return
    for kind in COMBINATIONS:
        for member in node.get(kind, ()):
            _check_names(taken, member)


def _check_name(taken: set[str], name: str) -> None:
    if not name:
        raise PachError("input must specify a name")
    if name in ("out", ".env"):
        raise PachError(f"input cannot be named {name}")
    if name in taken:
        raise PachError(f'name "{name}" was used more than once')
    taken.add(name)


def _check_pfs(pfs: Mapping[str, Any]) -> None:
    s3 = bool(pfs.get("s3"))
    checks = (
        (not pfs["repo"], "input must specify a repo"),
        (not pfs["branch"], "input must specify a branch"),
        (not s3 and not pfs["glob"], "input must specify a glob"),
        (
            s3 and pfs["glob"] != "/",
            "inputs that set 's3' to 'true' must also set 'glob', to \"/\", as the S3 gateway is only able to expose "
            "data at the commit level",
        ),
        (
            s3 and bool(pfs.get("lazy")),
            "input cannot specify both 's3' and 'lazy', as 's3' requires input data to be accessed via Pachyderm's S3 "
            "gateway rather than the file system",
        ),
        (
            s3 and bool(pfs.get("empty_files")),
            "input cannot specify both 's3' and 'empty_files', as 's3' requires input data to be accessed via "
            "Pachyderm's S3 gateway rather than the file system",
        ),
        (
            bool(pfs.get("commit")),
            "input cannot come from a commit; use a branch with head pointing to the commit",
        ),
    )
    for wrong, text in checks:
        if wrong:
            raise PachError(text)
