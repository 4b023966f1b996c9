"""The differences that an opt-in specification takes over from the deployed pipelines: registry, nodes, secrets, and
the variables on which they must agree."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from google.protobuf import json_format
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.checks import stage_variables
from pipelines.client.deployment.deployment import OWN_ANNOTATIONS
from pipelines.errors import LookalikeError
from pipelines.specifications.drafts import SpecDraft, SpecPatch
from pipelines.specifications.image_reference import ImageReference
from speclang.merge_patches import difference
from stages.datum.stage_version import STAGE

_PLACE = (
    *("metadata", "resource_requests", "resource_limits", "sidecar_resource_requests", "sidecar_resource_limits"),
    *("scheduling_spec", "tolerations", "pod_spec", "pod_patch", "autoscaling"),
)
"""The fields that say where and with what the workers run."""

_NODES = ("scheduling_spec", "tolerations", "pod_spec", "pod_patch")
"""Those of them that say where they run."""

_SECRETS = ("image_pull_secrets", "user")
_METRIC = "METRIC"
_SHARED = (_METRIC, "BACKEND")
"""The variables that must be those of the search, so that distances mean the same."""


def as_deployed(draft: SpecDraft, base: Mapping[str, SpecDraft], there: Mapping[str, Any]) -> SpecDraft:
    """An opt-in specification with the differences that the deployed pipelines of the same image have from theirs.

    Raises LookalikeError if one of these runs the stage of another version of lookalike: its image then lacks ours.
    """
    image = ImageReference.parse(draft.get("transform", "image", default=""))
    if image is None:
        return draft
    known = [(base[name], there[name].details) for name in reversed([*base]) if name in there]
    for written, runs in known:
        if _is_like(written, draft):
            _check_version(written, runs)
            return _with_threshold(draft, draft.patched(SpecPatch(_difference(written, runs))))
    for written, runs in known:
        if written.name in draft.spec().repos:
            _check_version(written, runs)
    beside = (_beside(image, written, runs) for written, runs in known if not _has_gpus(written))
    return _with_threshold(draft, draft.patched(SpecPatch(next(beside, {}))).patched(_metric(draft, there)))


def _metric(draft: SpecDraft, there: Mapping[str, Any]) -> SpecPatch:
    """The metric of the deployed pipelines, for a specification that states one."""
    found = {info.details.transform.env[_METRIC] for info in there.values() if _METRIC in info.details.transform.env}
    states = _METRIC in draft.get("transform", "env", default={})
    return SpecPatch({"transform": {"env": {_METRIC: min(found)}}} if states and len(found) == 1 else {})


def _beside(image: ImageReference, written: SpecDraft, runs: Any) -> dict[str, Any]:
    """The merge patch for a pipeline that has an image of its own: it takes over from another one that has no GPU, as
    this one has none, where images come from and where workers run."""
    difference = _difference(written, runs)
    transform = difference.get("transform", {})
    before, now = (
        ImageReference.parse(text) for text in (written.get("transform", "image", default=""), runs.transform.image)
    )
    inner = {name: value for name, value in transform.items() if name in _SECRETS}
    if before is not None and now is not None and before != now:
        tag = now.tag if now.tag != before.tag else image.tag
        inner["image"] = str(replace(image, where=now.where, tag=tag))
    return {**{name: difference[name] for name in _NODES if name in difference}, "transform": inner}


def _check_version(written: SpecDraft, runs: Any) -> None:
    stated, running = written.get("transform", "env", default={}).get(STAGE), runs.transform.env.get(STAGE)
    if stated != running:
        raise LookalikeError(
            f"{written.name} was deployed by another version of lookalike ({running}, not {stated}): run "
            "`lookalike deploy` first"
        )


def _with_threshold(written: SpecDraft, draft: SpecDraft) -> SpecDraft:
    """The specification with THRESHOLD in the units of its metric, if that is cosine and it was written for euclidean
    distances of vectors of length 1."""
    at = ("transform", "env")
    before, metric = (each.get(*at, _METRIC, default="") for each in (written, draft))
    threshold = draft.get(*at, "THRESHOLD", default="")
    if (before, metric) != ("euclidean", "cosine") or not threshold:
        return draft
    return draft.patched(SpecPatch({"transform": {"env": {"THRESHOLD": stage_variables.cosine(float(threshold))}}}))


def _is_like(written: SpecDraft, draft: SpecDraft) -> bool:
    """Whether two specifications have the same image, and both or neither have GPUs."""
    at = ("transform", "image")
    return written.get(*at) == draft.get(*at) and _has_gpus(written) == _has_gpus(draft)


def _has_gpus(draft: SpecDraft) -> bool:
    return bool(draft.number("resource_limits", "gpu", "number"))


def _difference(written: SpecDraft, details: Any) -> dict[str, Any]:
    """The merge patch that turns the specification's place into the deployed pipeline's."""
    stated = pps_pb2.CreatePipelineRequest()
    json_format.ParseDict(dict(written.document), stated, ignore_unknown_fields=True)
    running = pps_pb2.CreatePipelineRequest()
    json_format.ParseDict(json_format.MessageToDict(details), running, ignore_unknown_fields=True)
    for name in OWN_ANNOTATIONS:
        running.metadata.annotations.pop(name, None)
    before, after = _place(stated), _place(running)
    return difference(before, after)


def _place(request: Any) -> dict[str, Any]:
    """The fields of a request that say where and with what it runs."""
    document = json_format.MessageToDict(request, preserving_proto_field_name=True)
    transform = document.get("transform", {})
    place = {name: document[name] for name in _PLACE if document.get(name)}
    inner = {name: transform[name] for name in ("image", *_SECRETS) if name in transform}
    inner["env"] = {name: value for name, value in transform.get("env", {}).items() if name in _SHARED}
    return {**place, "transform": inner}
