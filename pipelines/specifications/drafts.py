"""Specifications as their files and overlays say them, flaws and all, and where each field of them is written."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pipelines.errors import LookalikeError
from pipelines.specifications import documents, fields
from pipelines.specifications.documents import NotJsonError
from pipelines.specifications.findings import Finding, Flaw, Level, Place
from pipelines.specifications.reading import Spec
from speclang.fields import Field
from speclang.merge_patches import merge


@dataclass(frozen=True, slots=True)
class Draft:
    """One pipeline as it is written. `document` is a CreatePipelineRequest in protojson with names in snake_case,
    without what could not be understood: that is in `flaws`. `places` says where fields are written; a field that is
    not in it is where the one around it is."""

    path: Path
    document: Mapping[str, Any]
    places: Mapping[Field, Place]
    findings: Sequence[Finding] = ()

    @property
    def name(self) -> str:
        """The pipeline's name; "" if it has none."""
        pipeline = self.document.get("pipeline") or {}
        return str(pipeline.get("name") or "")

    def place(self, at: Field) -> Place:
        """Where a field is written, or should be."""
        for end in range(len(at), 0, -1):
            if at[:end] in self.places:
                return self.places[at[:end]]
        return Place(self.path)

    def finding(self, flaw: Flaw) -> Finding:
        """The finding of a flaw in this specification."""
        return Finding(flaw, self.name, self.place(flaw.field))

    def get(self, *at: str, default: Any = None) -> Any:
        """The value of a field below objects, or `default` where it or one around it is missing."""
        value: Any = self.document
        for name in at:
            value = value.get(name) if isinstance(value, Mapping) else None
        return default if value is None else value

    def number(self, *at: str) -> float:
        """The number at a field, 0 where there is none: protojson takes it as text too."""
        return float(self.get(*at, default=0))

    def patched(self, patch: "Patch") -> "Draft":
        """This specification changed by a merge patch."""
        document = merge(self.document, patch.value)
        kept = {at: place for at, place in self.places.items() if not _replaced(at, patch)}
        return replace(self, document=document, places={**kept, **patch.places})

    def spec(self) -> Spec:
        """What is understood of it, as a specification that can be deployed."""
        return Spec(self.name, self.path, self.document)


@dataclass(frozen=True, slots=True)
class Patch:
    """A merge patch for a specification, with names in snake_case, and where its fields are written."""

    value: Mapping[str, Any]
    places: Mapping[Field, Place] = field(default_factory=dict)


def find(paths: Iterable[Path]) -> list[Draft]:
    """The drafts of files and of the files in directories; one that is no JSON object is an empty draft with that
    finding. Raises LookalikeError where there is no file, and for one that cannot be read."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = sorted(path.glob("*.json"))
            if not found:
                raise LookalikeError(f"{path} holds no specification (*.json)")
            files += found
        elif path.exists():
            files.append(path)
        else:
            raise LookalikeError(f"there is no specification, and no directory of them, at {path}")
    return [_found(path) for path in dict.fromkeys(files)]


def neighbours(found: Sequence[Draft]) -> list[Draft]:
    """The other specifications in the directories of some, as far as they can be read."""
    known = {draft.path.resolve() for draft in found}
    others: list[Draft] = []
    for directory in dict.fromkeys(draft.path.parent for draft in found):
        for path in sorted(directory.glob("*.json")):
            if path.resolve() not in known:
                with contextlib.suppress(LookalikeError):
                    others.append(read(path))
    return others


def read(path: Path) -> Draft:
    """One specification file. Raises NotJsonError for what is no JSON object."""
    document = documents.read(path)
    read = fields.read(document.value)
    places = {at: Place(path, document.lines[written]) for at, written in read.written.items() if at}
    draft = Draft(path, read.value, places)
    return replace(draft, findings=[draft.finding(flaw) for flaw in read.flaws])


def _found(path: Path) -> Draft:
    try:
        return read(path)
    except NotJsonError as error:
        flaw = Flaw(Level.ERROR, "json", (), error.why, "")
        return Draft(path, {}, {}, [Finding(flaw, "", Place(path, error.line))])


def _replaced(at: Field, patch: Patch) -> bool:
    """Whether a merge patch takes the place of a field by giving another value to it or to one around it."""
    value: Any = patch.value
    for part in at:
        if not isinstance(value, Mapping):
            return True
        if part not in value:
            return False
        value = value[part]
    return not isinstance(value, Mapping)
