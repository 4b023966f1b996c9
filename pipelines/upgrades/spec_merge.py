"""The installed specification of a pipeline with the choices of its library: parameters, overlays, sizes. Pure.

Where the deployment has recorded the specification as it was written then, all in which the pipeline differs from that
is a choice. Else all in which it differs from the installed one, among the fields in which libraries differ; new code,
new variables and another command come from the installed one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipelines.client.deployment.image_sizes import IMAGE_SIZE
from pipelines.specifications.drafts import SpecDraft, SpecPatch
from pipelines.specifications.image_reference import ImageReference
from pipelines.upgrades import spec_documents
from speclang.merge_patches import difference, merge
from stages.datum.stage_version import STAGE

RESOURCE_FIELDS = frozenset(
    {
        "autoscaling", "metadata", "parallelism_spec", "pod_patch", "pod_spec", "resource_limits", "resource_requests",
        "scheduling_spec", "sidecar_resource_limits", "sidecar_resource_requests", "tolerations",
    }
)  # fmt: skip
"""The fields of what workers have, and where they run."""

_PLACE = RESOURCE_FIELDS | {"datum_set_spec", "datum_timeout", "datum_tries", "job_timeout", "service"}
"""The fields in which libraries differ without a difference in their answers."""

CREDENTIALS = frozenset({"image_pull_secrets", "secrets", "user"})
"""The fields of a transform that are of the same kind."""

_CODE = ("cmd", "stdin", "err_cmd", "err_stdin")


@dataclass(frozen=True, slots=True)
class MergedSpec:
    """A specification to send. kept: the choices that it has and the installed one has not, such as "K=10". conflicts:
    fields that both the library and the new version have changed, or that nobody knows which of them has."""

    draft: SpecDraft
    kept: tuple[str, ...]
    conflicts: tuple[str, ...]


def merge_spec(installed: SpecDraft, asked: SpecDraft, info: Any) -> MergedSpec:
    """installed: the specification as it is in its file. asked: the same with the overlays and settings of the command,
    which prevail. info: the deployed pipeline, a PipelineInfo with details."""
    now, runs, recorded = (
        spec_documents.from_spec(installed.document),
        spec_documents.from_deployed(info),
        spec_documents.written(info),
    )
    asks = _asks(now, asked)
    choices = _choices(now, runs, recorded)
    image, clashes = _image(now, runs, recorded)
    if image:
        choices = merge(choices, {"transform": {"image": image}})
    conflicts = [name for name in (*_clashing(now, runs, recorded), *clashes) if not _has(asks, name)]
    patch = difference(now, merge(merge(now, choices), asks))
    draft = installed.patched(SpecPatch(patch))
    given = {*_leaves(asks)}
    return MergedSpec(draft, tuple(each for each in _leaves(patch) if each not in given), tuple(conflicts))


def _asks(now: Mapping[str, Any], asked: SpecDraft) -> dict[str, Any]:
    """The merge patch of what the command asks for. A variable that it sets to the installed value is asked for, too:
    the library may have another one."""
    stated = spec_documents.from_spec(asked.document)
    env = stated.get("transform", {}).get("env", {})
    settings = {name: env[name] for name in asked.settings if name in env}
    found: dict[str, Any] = merge(difference(now, stated), {"transform": {"env": settings}} if settings else {})
    return found


def _choices(now: Mapping[str, Any], runs: Mapping[str, Any], recorded: Mapping[str, Any] | None) -> dict[str, Any]:
    """The merge patch of the library's own choices, without its images."""
    found = difference(now if recorded is None else recorded, runs)
    inner = dict(found.pop("transform", {}))
    env = {name: value for name, value in inner.pop("env", {}).items() if name != STAGE}
    inner.pop("image", None)
    size = runs.get("transform", {}).get("env", {}).get(IMAGE_SIZE)
    if size is not None:  # it belongs to the backbone, whichever specification it came from
        env[IMAGE_SIZE] = size
    if recorded is None:
        found = {name: value for name, value in found.items() if name in _PLACE}
        inner = {name: value for name, value in inner.items() if name in CREDENTIALS and value is not None}
        env = {name: value for name, value in env.items() if value is not None}
    return {**found, "transform": {**inner, "env": env}}


def _clashing(now: Mapping[str, Any], runs: Mapping[str, Any], recorded: Mapping[str, Any] | None) -> Iterator[str]:
    """The fields that no merge can decide."""
    base = now if recorded is None else recorded
    if (
        _differ("input", base, runs)
        and _differ("input", now, runs)
        and (recorded is None or _differ("input", base, now))
    ):
        yield "input"
    inner = [each.get("transform", {}) for each in (base, runs, now)]
    for name in _CODE:
        if recorded is not None and len({str(each.get(name)) for each in inner}) == len(inner):
            yield f"transform.{name}"


def _differ(name: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return bool(one.get(name) != other.get(name))


def _image(
    now: Mapping[str, Any], runs: Mapping[str, Any], recorded: Mapping[str, Any] | None
) -> tuple[str, list[str]]:
    """The installed image where this library's images come from, "" for an unreadable one; and the conflict of a tag or
    a name of its own with a new one."""
    base = now if recorded is None else recorded
    was, has, new = (ImageReference.parse(each.get("transform", {}).get("image", "")) for each in (base, runs, now))
    if was is None or has is None or new is None:
        return "", []
    moved = replace(new, where=has.where) if has.where != was.where else new
    if recorded is None or (has.name, has.tag, has.digest) == (was.name, was.tag, was.digest):
        return str(moved), []
    if (new.name, new.tag, new.digest) == (was.name, was.tag, was.digest):
        return str(has), []
    return str(moved), ["transform.image"]


def _has(patch: Mapping[str, Any], field: str) -> bool:
    value: Any = patch
    for part in field.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return False
        value = value[part]
    return True


def _leaves(patch: Mapping[str, Any], at: tuple[str, ...] = ()) -> Iterator[str]:
    """The changes of a merge patch in words: variables by their names alone, others by their places."""
    for name, value in patch.items():
        place = (*at, name)
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, place)
            continue
        shown = name if place[:2] == ("transform", "env") else ".".join(place).removeprefix("transform.")
        if value is None:
            yield f"without {shown}"
        else:
            yield shown if isinstance(value, list) else f"{shown}={value}"
