"""The inputs of one specification: those that Pachyderm refuses, and those that give surprising datums."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.findings import Flaw
from speclang import globs, inputs
from speclang.field_paths import FieldPath
from speclang.globs import Glob, GlobError
from speclang.inputs import COMBINATIONS, LEAVES, InputNameRule


@dataclass(frozen=True, slots=True)
class InputLeaf:
    """A repo that a pipeline reads: its place in the specification, its branch, and its other fields in `value`."""

    at: FieldPath
    project: str
    repo: str
    branch: str
    name: str
    value: Mapping[str, Any]


def leaves(draft: SpecDraft) -> list[InputLeaf]:
    """The PFS inputs of a specification, with Pachyderm's defaults for missing fields."""
    return [leaf for at, node in nodes(draft) for leaf in _leaf(draft, at, node)]


def nodes(draft: SpecDraft) -> Iterator[tuple[FieldPath, Mapping[str, Any]]]:
    """Every node of the tree of inputs, from the top."""
    if draft.get("input") is not None:
        yield from inputs.nodes(draft.get("input"), ("input",))


def leaf(draft: SpecDraft, at: FieldPath, value: Mapping[str, Any]) -> InputLeaf:
    """A pfs input with its defaults."""
    repo = str(value.get("repo") or "")
    project = str(value.get("project") or draft.get("pipeline", "project", "name", default="") or "")
    name = str(value.get("name") or repo)
    return InputLeaf(at, project, repo, str(value.get("branch") or "master"), name, value)


def check(draft: SpecDraft) -> Iterator[Flaw]:
    """Inputs without a repo or a glob, names used twice, joins without a key."""
    for at, node in nodes(draft):
        kinds = [kind for kind in (*LEAVES, *COMBINATIONS) if node.get(kind)]
        if not kinds and "pfs" not in node and "cron" not in node:
            yield _error(at, "is not an input", f"write one of {', '.join((*LEAVES, *COMBINATIONS))}")
        elif len(kinds) > 1:
            yield _error(at, f"is {' and '.join(kinds)} at once", "nest one in the other")
        if node.get("pfs") is not None:
            yield from _check_pfs(leaf(draft, (*at, "pfs"), node["pfs"]))
        for kind, key in (("join", "join_on"), ("group", "group_by")):
            for place, member in enumerate(node.get(kind) or ()):
                if (member.get("pfs") or {}).get("repo") and not member["pfs"].get(key):
                    why = f"has no {key}: all files have the same, empty key"
                    yield Flaw.warning("input", (*at, kind, place, "pfs"), why, f'add "{key}": "$1"')
    if draft.get("input") is not None:
        yield from _check_names(draft)


def _check_pfs(leaf: InputLeaf) -> Iterator[Flaw]:
    if not leaf.repo:
        yield _error(leaf.at, "does not name a repo", 'add "repo"')
    if leaf.value.get("commit"):
        why = "an input follows a branch, not a commit"
        yield _error((*leaf.at, "commit"), why, "name a branch that has the commit as its head")
    pattern = leaf.value.get("glob") or ""
    if leaf.value.get("s3"):
        if pattern not in ("", "/"):
            yield _error((*leaf.at, "glob"), "an s3 input is always one datum", 'write "/"')
        return
    if not pattern:
        yield _error(
            leaf.at, "has no glob, which divides the repo into datums", 'add "glob": "/*", or "/" for one datum'
        )
        return
    try:
        glob = Glob(pattern)
    except GlobError as error:
        yield _error((*leaf.at, "glob"), str(error), "correct the pattern")
        return
    if glob.unclosed:
        why = "a group is not closed: Pachyderm lets it end with the pattern"
        yield Flaw.warning("input", (*leaf.at, "glob"), why, "close it, or write \\( or \\{ for a literal sign")
    for key in ("join_on", "group_by"):
        unknown = [number for number in globs.references(leaf.value.get(key) or "") if number > glob.groups]
        if unknown:
            why = f"names group {unknown[0]} of a glob with {glob.groups}"
            yield _error((*leaf.at, key), why, "put that part of the glob into parentheses")


def _check_names(draft: SpecDraft) -> Iterator[Flaw]:
    for fault in inputs.name_faults(draft.get("input"), ("input",)):
        name = fault.name
        match fault.rule:
            case InputNameRule.REPEATED:
                fix = f'give it another name, such as "name": "{name}2"'
                yield _error(fault.at, f"is called {name}, like another input", fix)
            case InputNameRule.RESERVED:
                yield _error(fault.at, f"cannot be called {name}: /pfs/{name} is taken", 'add another "name"')
            case InputNameRule.MISSING if fault.at[-1] == "cron":  # a pfs input without a name has no repo
                yield _error(fault.at, "has no name", 'add "name"')


def _leaf(draft: SpecDraft, at: FieldPath, node: Mapping[str, Any]) -> Iterator[InputLeaf]:
    if node.get("pfs") is not None:
        yield leaf(draft, (*at, "pfs"), node["pfs"])
    if node.get("cron") is not None:
        cron = node["cron"]
        name = str(cron.get("name") or "")
        repo = str(cron.get("repo") or f"{draft.name}_{name}")
        yield InputLeaf((*at, "cron"), str(cron.get("project") or ""), repo, "master", name, cron)


def _error(at: FieldPath, why: str, fix: str) -> Flaw:
    return Flaw.error("input", at, why, fix)
