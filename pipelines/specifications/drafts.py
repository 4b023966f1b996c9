"""Specifications as written in their files and overlays, flaws included, with the place of every field."""

import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pipelines.errors import LookalikeError
from pipelines.specifications import json_documents, optional_specs, spec_fields
from pipelines.specifications.findings import Finding, Flaw, FlawPlace
from pipelines.specifications.json_documents import NotJsonError
from pipelines.specifications.pipeline_specs import PipelineSpec
from speclang import inputs
from speclang.field_paths import FieldPath
from speclang.merge_patches import merge


@dataclass(frozen=True, slots=True)
class SpecDraft:
    """One pipeline as written. `document` is a CreatePipelineRequest in protojson with names in snake_case, without the
    invalid parts, which are in `findings`. `places` maps fields to their places; a field that is not in it has the
    place of the one that contains it. `written` is the document before the first patch, None if there was none.
    `settings` are the variables in its patches, also those that have the value that was there."""

    path: Path
    document: Mapping[str, Any]
    places: Mapping[FieldPath, FlawPlace]
    findings: Sequence[Finding] = ()
    written: Mapping[str, Any] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The pipeline's name, "" if it is not set."""
        pipeline = self.document.get("pipeline") or {}
        return str(pipeline.get("name") or "")

    def place(self, at: FieldPath) -> FlawPlace:
        """The place of a field, or the one where it belongs."""
        for end in range(len(at), 0, -1):
            if at[:end] in self.places:
                return self.places[at[:end]]
        return FlawPlace(self.path)

    def finding(self, flaw: Flaw) -> Finding:
        """The finding of a flaw in this specification."""
        return Finding(flaw, self.name, self.place(flaw.field))

    def get(self, *at: str, default: Any = None) -> Any:
        """The value of a nested field, or `default` if it or a field that contains it is missing."""
        value: Any = self.document
        for name in at:
            value = value.get(name) if isinstance(value, Mapping) else None
        return default if value is None else value

    def number(self, *at: str) -> float:
        """The number in a field, 0 if it is missing; protojson allows text as well."""
        return float(self.get(*at, default=0))

    def patched(self, patch: "SpecPatch") -> "SpecDraft":
        """This specification changed by a merge patch."""
        document = merge(self.document, patch.value)
        kept = {at: place for at, place in self.places.items() if not _replaced(at, patch)}
        written = self.document if self.written is None else self.written
        settings = {**self.settings, **patch.settings}
        return replace(self, document=document, places={**kept, **patch.places}, written=written, settings=settings)

    @property
    def repos(self) -> set[str]:
        """The names of the repos that it reads, as far as they are valid."""
        found = (node.get("pfs") for _, node in inputs.nodes(self.get("input", default={}), ("input",)))
        return {str(each["repo"]) for each in found if isinstance(each, Mapping) and each.get("repo")}

    def spec(self) -> PipelineSpec:
        """Its valid parts as a specification that can be deployed."""
        return PipelineSpec(self.name, self.path, self.document, self.written)


@dataclass(frozen=True, slots=True)
class SpecPatch:
    """A merge patch for a specification, with names in snake_case, and the places of its fields."""

    value: Mapping[str, Any]
    places: Mapping[FieldPath, FlawPlace] = field(default_factory=dict)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The variables that it changes."""
        inner = self.value.get("transform")
        env = inner.get("env") if isinstance(inner, Mapping) else None
        return env if isinstance(env, Mapping) else {}


def find(paths: Iterable[Path]) -> list[SpecDraft]:
    """The drafts of files and of the files in directories, opt-in ones too; a file that is not a JSON object gives an
    empty draft with that finding. Raises LookalikeError for a missing or unreadable file."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = optional_specs.files(path)
            if not found:
                raise LookalikeError(f"{path} holds no specification (*.json)")
            files += found
        elif path.exists():
            files.append(path)
        else:
            raise LookalikeError(f"{path} is neither a specification nor a directory of specifications")
    return [_found(path) for path in dict.fromkeys(files)]


def wanted(found: Sequence[SpecDraft], there: Collection[str]) -> set[str]:
    """The names of those to deploy on a server with these pipelines: the ones that every library has, the opt-in ones
    that are there, and those that these read."""
    names = {draft.name for draft in found if draft.name in there or not optional_specs.group(draft.path)}
    known = {draft.name: draft for draft in found}
    while more := ({repo for name in names for repo in known[name].repos} & known.keys()) - names:
        names |= more
    return names


def neighbours(found: Sequence[SpecDraft]) -> list[SpecDraft]:
    """The other readable specifications in the directories of these, opt-in ones too."""
    known = {draft.path.resolve() for draft in found}
    others: list[SpecDraft] = []
    for path in dict.fromkeys(path for draft in found for path in optional_specs.beside(draft.path)):
        if path.resolve() not in known:
            with contextlib.suppress(LookalikeError):
                others.append(read(path))
    return others


def read(path: Path) -> SpecDraft:
    """One specification file. Raises NotJsonError unless it holds a JSON object."""
    document = json_documents.read(path)
    read = spec_fields.read(document.value)
    places = {at: FlawPlace(path, document.lines[written]) for at, written in read.written.items() if at}
    draft = SpecDraft(path, read.value, places)
    return replace(draft, findings=[draft.finding(flaw) for flaw in read.flaws])


def _found(path: Path) -> SpecDraft:
    try:
        return read(path)
    except NotJsonError as error:
        flaw = Flaw.error("json", (), error.why, "")
        return SpecDraft(path, {}, {}, [Finding(flaw, "", FlawPlace(path, error.line))])


def _replaced(at: FieldPath, patch: SpecPatch) -> bool:
    """Whether a merge patch replaces a field, or one that contains it."""
    value: Any = patch.value
    for part in at:
        if not isinstance(value, Mapping):
            return True
        if part not in value:
            return False
        value = value[part]
    return not isinstance(value, Mapping)
