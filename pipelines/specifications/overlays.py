"""Overlays: the differences of one kind of cluster, applied to specifications that are the same everywhere.

An overlay is a file of specs/overlays, or any other. Its members, all optional, are applied in this order:
`images` (other registries, tags and names), `all` (a merge patch, RFC 7396, for every pipeline), `gpus` (one for those
with GPUs in their limits) and `pipelines` (one for each pipeline named). `image_cache` belongs to the manifest that
`imagecache` makes. Text may hold `${NAME}` or `${NAME:-default}`: variables of the environment.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pipelines.errors import LookalikeError
from pipelines.specifications import json_documents, optional_specs, spec_fields, specs_directory
from pipelines.specifications.drafts import SpecDraft, SpecPatch
from pipelines.specifications.findings import Finding, Flaw, FlawPlace, did_you_mean
from pipelines.specifications.image_reference import ImageReference
from pipelines.specifications.json_documents import JsonDocument
from pipelines.specifications.pipeline_specs import SHIPPED_SPECS
from speclang.field_paths import FieldPath, dotted

_DIRECTORY = "overlays"
"""The directory of overlays beside specifications."""

_MEMBERS = ("description", "images", "all", "gpus", "pipelines", "image_cache")
_OF_IMAGES = ("registry", "tag", "name")
_VARIABLE = re.compile(r"\$\{([A-Z][A-Z0-9_]*)(?::-([^}]*))?\}")


@dataclass(frozen=True, slots=True)
class Overlay:
    """One overlay with its variables filled in. `images` maps a pattern of image names to their registry, tag and
    name, each "" to keep it."""

    name: str
    path: Path
    description: str
    images: Mapping[str, tuple[str, str, str]]
    all: SpecPatch
    gpus: SpecPatch
    pipelines: Mapping[str, SpecPatch]
    image_cache: Mapping[str, Any]
    findings: Sequence[Finding]

    @property
    def reaches_only_named(self) -> bool:
        """Whether it leaves all pipelines alone that it does not name."""
        return not (self.images or self.all.value or self.gpus.value)

    def apply(self, draft: SpecDraft) -> SpecDraft:
        """The specification with this overlay applied."""
        draft = self._with_image(draft).patched(self.all)
        if draft.number("resource_limits", "gpu", "number"):
            draft = draft.patched(self.gpus)
        return draft.patched(self.pipelines.get(draft.name, SpecPatch({})))

    def _with_image(self, draft: SpecDraft) -> SpecDraft:
        written = draft.get("transform", "image", default="")
        image = ImageReference.parse(written)
        for pattern, change in self.images.items():
            if image is not None and fnmatchcase(image.name, pattern):
                place = FlawPlace(self.path)
                moved = image.moved(*change)
                return draft.patched(SpecPatch({"transform": {"image": str(moved)}}, {("transform", "image"): place}))
        return draft


def names() -> list[str]:
    """The names of the overlays beside the specifications in use, and of those that lookalike ships."""
    return sorted(_named())


def load(name: str, environment: Mapping[str, str] = os.environ) -> Overlay:
    """An overlay by its name, or by the path of a file. Raises LookalikeError for one that is missing, has invalid
    members, or needs variables that are not set; flaws in its patches are in `findings`."""
    path = Path(name) if name.endswith(".json") or "/" in name else _named().get(name, Path(f"{name}.json"))
    if not path.is_file():
        known = f"choose from {', '.join(names())}, or name a file"
        raise LookalikeError(f"unknown overlay {name}: {did_you_mean(name, names(), known)}")
    document = json_documents.read(path)
    document = replace(document, value=_filled(document.value, path, environment))
    _check_members(document)
    findings: list[Finding] = []

    def patch(*at: str) -> SpecPatch:
        value: Any = document.value
        for part in at:
            value = value.get(part, {})
        read = _patch(document, at, value)
        findings.extend(read[1])
        return read[0]

    return Overlay(
        name=path.stem,
        path=path,
        description=str(document.value.get("description", "")),
        images=dict(_images(document)),
        all=patch("all"),
        gpus=patch("gpus"),
        pipelines={each: patch("pipelines", each) for each in document.value.get("pipelines", {})},
        image_cache=document.value.get("image_cache", {}),
        findings=findings,
    )


def _named() -> dict[str, Path]:
    """The overlays that have names, by these."""
    places = (SHIPPED_SPECS / _DIRECTORY, specs_directory.current() / _DIRECTORY)
    return {path.stem: path for place in places for path in place.glob("*.json")}


def implied(names: Collection[str]) -> list[Overlay]:
    """The overlays of pipelines to deploy, by their names: an opt-in one that others read has the overlay of its name,
    which gives them this input. They are applied without being named."""
    return [load(name) for name in sorted(_named().keys() & names)]


def apply(overlays: Sequence[Overlay], drafts: Sequence[SpecDraft]) -> list[SpecDraft]:
    """The specifications with the overlays applied in order. Raises LookalikeError if an overlay names a pipeline that
    is neither among them nor one that lookalike ships: a directory may lack opt-in ones."""
    known = [*(draft.name for draft in drafts), *(path.stem for path in optional_specs.files(SHIPPED_SPECS))]
    for overlay in overlays:
        for name in overlay.pipelines:
            if name not in known:
                fix = did_you_mean(name, known, f"there are {', '.join(known)}")
                raise LookalikeError(f"{overlay.path}: unknown pipeline {name}: {fix}")
        drafts = [overlay.apply(draft) for draft in drafts]
    return list(drafts)


def _patch(document: JsonDocument, at: Sequence[str], value: Any) -> tuple[SpecPatch, list[Finding]]:
    read = spec_fields.read(value, patch=True)
    inside = {field: (*at, *written) for field, written in read.written.items()}

    def place(field: FieldPath) -> FlawPlace:
        return FlawPlace(document.path, document.lines.get(inside.get(field, tuple(at))))

    places = {field: place(field) for field in inside if field}
    return SpecPatch(read.value, places), [Finding(_inside(flaw, at), "", place(flaw.field)) for flaw in read.flaws]


def _inside(flaw: Flaw, at: Sequence[str]) -> Flaw:
    return replace(flaw, field=(*at, *flaw.field))


def _images(document: JsonDocument) -> Iterator[tuple[str, tuple[str, str, str]]]:
    for pattern, change in document.value.get("images", {}).items():
        registry, tag, name = (str(change.get(member, "")) for member in _OF_IMAGES)
        yield pattern, (registry.rstrip("/"), tag, name)


def _check_members(document: JsonDocument) -> None:
    value = document.value
    _check_names(document, (), value, _MEMBERS)
    for name in ("images", "all", "gpus", "pipelines", "image_cache"):
        _check_object(document, (name,), value.get(name, {}))
    for pattern, change in value.get("images", {}).items():
        _check_object(document, ("images", pattern), change)
        _check_names(document, ("images", pattern), change, _OF_IMAGES)
    for name, each in value.get("pipelines", {}).items():
        _check_object(document, ("pipelines", name), each)


def _check_object(document: JsonDocument, at: FieldPath, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise LookalikeError(f"{document.path}:{document.lines.get(at, 1)}: {dotted(at)} must be an object in braces")


def _check_names(document: JsonDocument, at: FieldPath, value: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in value:
        if name not in known:
            fix = did_you_mean(name, known, f"an overlay may have {', '.join(known)}")
            raise LookalikeError(f"{document.path}:{document.lines[(*at, name)]}: unknown {dotted((*at, name))}: {fix}")


def _filled(value: Any, path: Path, environment: Mapping[str, str]) -> Any:
    """The value with the variables in its text filled in."""
    missing: set[str] = set()

    def fill(each: Any) -> Any:
        if isinstance(each, dict):
            return {name: fill(member) for name, member in each.items()}
        if isinstance(each, list):
            return [fill(item) for item in each]
        return _VARIABLE.sub(replacement, each) if isinstance(each, str) else each

    def replacement(found: re.Match[str]) -> str:
        value = environment.get(found[1]) or found[2]
        if value is None:
            missing.add(found[1])
        return value or ""

    filled = fill(value)
    if missing:
        wanted = " ".join(f"{name}=…" for name in sorted(missing))
        raise LookalikeError(f"overlay {path.stem} needs {wanted} in the environment: {_description(value)}")
    return filled


def _description(value: Any) -> str:
    return str(value.get("description", "") if isinstance(value, dict) else "") or "see the file"
