"""The pipeline specifications: read from files, decoded strictly, in the order in which they depend on each other."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.errors import LookalikeError
from pipelines.specifications import json_documents

SHIPPED_SPECS = Path(__file__).resolve().parents[2] / "specs"
"""The directory of the specifications that lookalike ships."""

SOURCES = {
    "images": "The library: pictures, directories, archives or blocks of them; every top-level entry is one datum.",
    "masks": "The removed pictures that blocks in images still hold, as `lookalike remove` lists them.",
    "queries": "Pictures, or directories of them, to find look-alikes of; every top-level entry gets a result sheet.",
    "models": "The backbone: backbone.keras, backbone.json and scale.json, written in one commit.",
    "layouts": "The layout of the map, as `lookalike map fit` makes it: places of a sample of the library.",
    "labels": "Labels of pictures, as CSV, for evaluation and training: columns source, label and name.",
    "attributes": "Attributes of pictures, as `lookalike attributes add` puts them: tables, and a schema of them all.",
    "vectors": "Vectors of pictures that another model computed, as `lookalike vectors add` puts them.",
    "parameters": "Parameters of trainings, a JSON file for each run.",
}
"""The repos that lookalike's commands put files into, with their descriptions."""


@dataclass(frozen=True, slots=True)
class PipelineSpec:
    """One pipeline as specified in its file: `document` is the JSON, `fingerprint` the sha256 of its canonical form.
    `written` is the JSON before overlays and settings, None if there were none."""

    name: str
    path: Path
    document: Mapping[str, Any]
    written: Mapping[str, Any] | None = None

    @property
    def fingerprint(self) -> str:
        canonical = json.dumps(self.document, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def repos(self) -> frozenset[str]:
        """The names of the repos that the pipeline reads."""
        return repos_read(self.request().input)

    def request(self) -> Any:
        """The specification as a CreatePipelineRequest. Raises LookalikeError for an unknown field, which Pachyderm
        would silently drop."""
        request = pps_pb2.CreatePipelineRequest()
        try:
            json_format.ParseDict(dict(self.document), request)
        except (json_format.ParseError, TypeError, ValueError) as error:
            raise LookalikeError(f"{self.path}: {str(error).splitlines()[0].strip()}") from error
        return request


def deployed_request(info: Any) -> Any:
    """The CreatePipelineRequest that makes a pipeline as it is deployed, given as a PipelineInfo with details."""
    request = pps_pb2.CreatePipelineRequest()
    # The details are the fields of a request, by the same names, and some that Pachyderm adds.
    json_format.ParseDict(json_format.MessageToDict(info.details), request, ignore_unknown_fields=True)
    request.pipeline.CopyFrom(info.pipeline)
    return request


def leaves(tree: Any) -> Iterator[Any]:
    """The PFSInputs in an Input."""
    if tree.HasField("pfs"):
        yield tree.pfs
    for member in (*tree.cross, *tree.union, *tree.join, *tree.group):
        yield from leaves(member)


def repos_read(tree: Any) -> frozenset[str]:
    """The names of the repos that an Input reads."""
    return frozenset(leaf.repo for leaf in leaves(tree))


def load(directory: Path = SHIPPED_SPECS) -> list[PipelineSpec]:
    """Every specification of a directory, upstream first."""
    if not directory.is_dir():
        raise LookalikeError(f"{directory} is not a directory of specifications")
    found = [read(path) for path in sorted(directory.glob("*.json"))]
    if not found:
        raise LookalikeError(f"{directory} holds no specification (*.json)")
    return ordered(found)


def ordered(specs: Iterable[PipelineSpec]) -> list[PipelineSpec]:
    """The specifications, upstream first. Raises LookalikeError if two specify one pipeline, or for a cycle."""
    found: dict[str, PipelineSpec] = {}
    for spec in specs:
        other = found.setdefault(spec.name, spec)
        if other is not spec:
            raise LookalikeError(f"{other.path} and {spec.path} both specify the pipeline {spec.name}")
    return upstream_first(found.values())


def read(path: Path) -> PipelineSpec:
    """One specification file, decoded. Raises LookalikeError for an invalid one."""
    document = json_documents.read(path).value
    name = PipelineSpec("", path, document).request().pipeline.name
    if not name:
        raise LookalikeError(f"{path} does not name its pipeline: set pipeline.name")
    return PipelineSpec(name, path, document)


def upstream_first(specs: Iterable[PipelineSpec]) -> list[PipelineSpec]:
    """The specifications, each after those whose output it reads."""
    left = {spec.name: spec for spec in specs}
    ordered: list[PipelineSpec] = []
    while left:
        ready = [spec for spec in left.values() if not (spec.repos & left.keys())]
        if not ready:
            raise LookalikeError(f"these pipelines read each other in a cycle: {', '.join(sorted(left))}")
        for spec in ready:
            ordered.append(left.pop(spec.name))
    return ordered


def sources(specs: Iterable[PipelineSpec]) -> list[str]:
    """The repos that pipelines read and none writes: users put files into these."""
    known = list(specs)
    written = {spec.name for spec in known}
    return sorted({repo for spec in known for repo in spec.repos} - written)
