"""The inputs of one specification: their tree, and what Pachyderm refuses or would make surprising datums of."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.checks.globs import Glob, GlobError
from pipelines.specifications.documents import Field
from pipelines.specifications.drafts import Draft
from pipelines.specifications.findings import Flaw, Level

COMBINATIONS = ("cross", "union", "join", "group")
_LEAVES = ("pfs", "cron")
_TAKEN = ("out", ".env")
"""Names below /pfs that Pachyderm uses itself."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A repo that is read: where the specification says so, the branch, and how it is cut into datums."""

    at: Field
    project: str
    repo: str
    branch: str
    name: str
    value: Mapping[str, Any]


def leaves(draft: Draft) -> list[Leaf]:
    """The PFS inputs of a specification, with Pachyderm's defaults for what they leave out."""
    return [leaf for at, node in nodes(draft) for leaf in _leaf(draft, at, node)]


def nodes(draft: Draft) -> Iterator[tuple[Field, Mapping[str, Any]]]:
    """Every node of the tree of inputs, from the top."""
    if draft.get("input") is not None:
        yield from _nodes(("input",), draft.get("input"))


def leaf(draft: Draft, at: Field, value: Mapping[str, Any]) -> Leaf:
    """A pfs input with its defaults."""
    repo = str(value.get("repo") or "")
    project = str(value.get("project") or draft.get("pipeline", "project", "name", default="") or "")
    name = str(value.get("name") or repo)
    return Leaf(at, project, repo, str(value.get("branch") or "master"), name, value)


def check(draft: Draft) -> Iterator[Flaw]:
    """Inputs without a repo or a glob, names used twice, joins without a key."""
    for at, node in nodes(draft):
        kinds = [kind for kind in (*_LEAVES, *COMBINATIONS) if node.get(kind)]
        if not kinds and "pfs" not in node and "cron" not in node:
            yield _error(at, "is no input", f"write one of {', '.join((*_LEAVES, *COMBINATIONS))}")
        elif len(kinds) > 1:
            yield _error(at, f"is {' and '.join(kinds)} at once", "nest one in the other")
        if node.get("pfs") is not None:
            yield from _check_pfs(leaf(draft, (*at, "pfs"), node["pfs"]))
        for kind, key in (("join", "join_on"), ("group", "group_by")):
            for place, member in enumerate(node.get(kind) or ()):
                if (member.get("pfs") or {}).get("repo") and not member["pfs"].get(key):
                    why = f"has no {key}: every file has the same, empty key"
                    yield Flaw(Level.WARNING, "input", (*at, kind, place, "pfs"), why, f'add "{key}": "$1"')
    if draft.get("input") is not None:
        yield from _check_names(draft)


def _check_pfs(leaf: Leaf) -> Iterator[Flaw]:
    if not leaf.repo:
        yield _error(leaf.at, "names no repo", 'add "repo"')
    if leaf.value.get("commit"):
        why = "an input follows a branch, not a commit"
        yield _error((*leaf.at, "commit"), why, "name a branch whose head is that commit")
    pattern = leaf.value.get("glob") or ""
    if leaf.value.get("s3"):
        if pattern not in ("", "/"):
            yield _error((*leaf.at, "glob"), "an s3 input is one datum", 'write "/"')
        return
    if not pattern:
        yield _error(leaf.at, "has no glob, which cuts the repo into datums", 'add "glob": "/*", or "/" for one datum')
        return
    try:
        glob = Glob(pattern)
    except GlobError as error:
        yield _error((*leaf.at, "glob"), str(error), "correct the pattern")
        return
    for key in ("join_on", "group_by"):
        number = glob.unknown_reference(leaf.value.get(key) or "")
        if number:
            why = f"names group {number} of a glob that has {glob.groups}"
            yield _error((*leaf.at, key), why, "put what it should take into brackets in the glob")


def _check_names(draft: Draft) -> Iterator[Flaw]:
    """A name is a directory below /pfs: no two of one datum may be the same. Members of a union or group never meet, or
    may share it."""
    for at, node in nodes(draft):
        for kind in ("cross", "join"):
            seen: set[str] = set()
            for place, member in enumerate(node.get(kind) or ()):
                names = dict(_names((*at, kind, place), member))
                for name in sorted(names.keys() & seen):
                    mend = f'give it another name, such as "name": "{name}2"'
                    yield _error(names[name], f"is called {name}, as another input of the {kind} is", mend)
                seen |= names.keys()
    for name, where in _names(("input",), draft.get("input")):
        if name in _TAKEN:
            yield _error(where, f"cannot be called {name}: /pfs/{name} is taken", 'add another "name"')


def _names(at: Field, node: Mapping[str, Any]) -> Iterator[tuple[str, Field]]:
    """The name of each input in a tree, and where it is."""
    for inner, each in _nodes(at, node):
        for kind in _LEAVES:
            if each.get(kind) is not None:
                yield str(each[kind].get("name") or each[kind].get("repo") or ""), (*inner, kind)


def _nodes(at: Field, node: Mapping[str, Any]) -> Iterator[tuple[Field, Mapping[str, Any]]]:
    yield at, node
    for kind in COMBINATIONS:
        for place, member in enumerate(node.get(kind) or ()):
            yield from _nodes((*at, kind, place), member)


def _leaf(draft: Draft, at: Field, node: Mapping[str, Any]) -> Iterator[Leaf]:
    if node.get("pfs") is not None:
        yield leaf(draft, (*at, "pfs"), node["pfs"])
    if node.get("cron") is not None:
        cron = node["cron"]
        name = str(cron.get("name") or "")
        repo = str(cron.get("repo") or f"{draft.name}_{name}")
        yield Leaf((*at, "cron"), str(cron.get("project") or ""), repo, "master", name, cron)


def _error(at: Field, why: str, mend: str) -> Flaw:
    return Flaw(Level.ERROR, "input", at, why, mend)
