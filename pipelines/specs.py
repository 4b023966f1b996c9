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

HERE = Path(__file__).resolve().parent.parent / "specs"
"""The specifications that come with lookalike."""


@dataclass(frozen=True, slots=True)
class Spec:
    """One pipeline as its file says it: `document` is the JSON, `fingerprint` the sha256 of its canonical form."""

    name: str
    path: Path
    document: Mapping[str, Any]

    @property
    def fingerprint(self) -> str:
        canonical = json.dumps(self.document, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def repos(self) -> frozenset[str]:
        """The names of the repos that the pipeline reads."""
        return frozenset(leaf["repo"] for leaf in _leaves(self.document.get("input", {})))

    def request(self) -> Any:
        """The specification as a CreatePipelineRequest; a field that Pachyderm does not know is an error."""
        request = pps_pb2.CreatePipelineRequest()
        try:
            json_format.ParseDict(dict(self.document), request)
        except json_format.ParseError as error:
            raise LookalikeError(f"{self.path}: {error}") from error
        return request


def _leaves(tree: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "pfs" in tree:
        yield tree["pfs"]
    for kind in ("cross", "union", "join", "group"):
        for member in tree.get(kind, ()):
            yield from _leaves(member)


def load(directory: Path = HERE) -> list[Spec]:
    """Every specification of a directory, upstream first."""
    if not directory.is_dir():
        raise LookalikeError(f"there is no directory of specifications at {directory}")
    found = [read(path) for path in sorted(directory.glob("*.json"))]
    if not found:
        raise LookalikeError(f"{directory} holds no specification (*.json)")
    return upstream_first(found)


def read(path: Path) -> Spec:
    """One specification file."""
    try:
        document = json.loads(path.read_text())
    except ValueError as error:
        raise LookalikeError(f"{path} is not JSON: {error}") from error
    try:
        name = document["pipeline"]["name"]
    except (KeyError, TypeError) as error:
        raise LookalikeError(f"{path} names no pipeline: it needs pipeline.name") from error
    spec = Spec(name, path, document)
    spec.request()
    return spec


def upstream_first(specs: Iterable[Spec]) -> list[Spec]:
    """The specifications, each after those whose output it reads."""
    left = {spec.name: spec for spec in specs}
    ordered: list[Spec] = []
    while left:
        ready = [spec for spec in left.values() if not (spec.repos & left.keys())]
        if not ready:
            raise LookalikeError(f"these pipelines read each other in a circle: {', '.join(sorted(left))}")
        for spec in ready:
            ordered.append(left.pop(spec.name))
    return ordered


def sources(specs: Iterable[Spec]) -> list[str]:
    """The repos that are read but that no pipeline writes: those that people put files in."""
    known = list(specs)
    written = {spec.name for spec in known}
    return sorted({repo for spec in known for repo in spec.repos} - written)
