"""Deployed pipelines compared with what is to take their place, and what that has computed downstream. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.upgrades import spec_documents
from pipelines.upgrades.spec_merge import CREDENTIALS, RESOURCE_FIELDS
from speclang.merge_patches import difference
from stages.datum.stage_version import STAGE

CODE, IMAGE, COMMAND, ENVIRONMENT, INPUT = "code", "image", "command", "environment", "input"
RESOURCES, SETTINGS = "resources", "settings"
_ORDER = (CODE, IMAGE, COMMAND, ENVIRONMENT, INPUT, RESOURCES, SETTINGS)


@dataclass(frozen=True, slots=True)
class UpgradeStep:
    """One pipeline of an upgrade or of the way back. change: "unchanged", "changed", "new", "unused" (no longer among
    the specifications), "back" or "deleted". parts: those in which it changes, and values of its code before and after.
    reprocessed: whether all of its datums are computed again. kept: the library's choices in it. request: what is sent,
    None for nothing. spec_commit: of the version that was compared, "" if there is none."""

    pipeline: str
    change: str
    parts: tuple[str, ...] = ()
    code: tuple[str, str] = ("", "")
    reprocessed: bool = False
    kept: tuple[str, ...] = ()
    request: Any = None
    spec_commit: str = ""

    @property
    def is_sent(self) -> bool:
        return self.request is not None


def parts(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[str, ...]:
    """The parts in which one document of `spec_documents` differs from another, the most important first."""
    found: set[str] = set()
    for field, inner in difference(old, new).items():
        if field == "transform":
            found |= {_part_of_transform(name) for name in inner or {COMMAND: None} if name != "env"}
            variables = (inner or {}).get("env") or {}
            found |= {CODE if name == STAGE else ENVIRONMENT for name in variables}
        elif field == INPUT:
            found.add(INPUT)
        else:
            found.add(RESOURCES if field in RESOURCE_FIELDS else SETTINGS)
    return tuple(sorted(found, key=_ORDER.index))


def _part_of_transform(name: str) -> str:
    return IMAGE if name == "image" else RESOURCES if name in CREDENTIALS else COMMAND


def code(document: Mapping[str, Any]) -> str:
    """The stage and its version that a document names."""
    return str(document.get("transform", {}).get("env", {}).get(STAGE, ""))


def upgrade_step(
    info: Any, request: Any, reprocessed: bool, kept: Iterable[str] = (), change: str = "changed"
) -> UpgradeStep:
    """The step from a deployed pipeline, given as a PipelineInfo with details, to a CreatePipelineRequest."""
    before, after = spec_documents.from_deployed(info), spec_documents.running_request(request)
    different = parts(before, after)
    name, commit = info.pipeline.name, info.spec_commit.id
    if not different and change == "changed":
        return UpgradeStep(name, "unchanged", kept=tuple(kept), spec_commit=commit)
    return UpgradeStep(
        name, change, different, (code(before), code(after)), reprocessed, tuple(kept), request, spec_commit=commit
    )


def recomputed_pipelines(steps: Sequence[UpgradeStep], reads: Mapping[str, Iterable[str]]) -> dict[str, bool]:
    """The pipelines that compute, upstream first where `reads` is: True for those that compute all again, False for
    those whose inputs may change. reads: the repos that each pipeline reads, by its name."""
    anew = {step.pipeline for step in steps if step.reprocessed or step.change == "new" or INPUT in step.parts}
    reached, fresh = set(anew), set(anew)
    while fresh:
        fresh = {name for name, repos in reads.items() if name not in reached and not fresh.isdisjoint(repos)}
        reached |= fresh
    return {name: name in anew for name in [*reads, *sorted(anew - reads.keys())] if name in reached}
