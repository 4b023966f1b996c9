"""The fields of a specification against Pachyderm's messages: the problems of reading them, as flaws."""

from dataclasses import dataclass, field
from typing import Any

from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.specifications.findings import Flaw
from speclang import messages
from speclang.field_paths import FieldPath
from speclang.messages import MessageProblem, MessageRule

REQUEST = pps_pb2.CreatePipelineRequest.DESCRIPTOR
_CLIENTS_OWN = ("update", "reprocess", "spec_commit", "details_json", "dry_run")
"""Fields of the request that the client fills in, not the specification."""

_NEWER = {"maximum_expected_uptime": "2.8"}
"""Fields of newer versions that lookalike cannot send, because it sends 2.7's messages."""

_RULES = {MessageRule.TYPE: "type", MessageRule.REPEATED: "type", MessageRule.CHOICE: "enum"}


@dataclass(slots=True)
class SpecFields:
    """The canonical value, its flaws, and the way that each canonical field was written."""

    value: dict[str, Any]
    flaws: list[Flaw] = field(default_factory=list)
    written: dict[FieldPath, FieldPath] = field(default_factory=dict)


def read(value: Any, patch: bool = False) -> SpecFields:
    """The fields of a CreatePipelineRequest in protojson, with names in snake_case and without the parts that could not
    be understood. With `patch`, those of a merge patch to one, where null removes a field."""
    read = messages.read(value, REQUEST, patch=patch)
    flaws = [_flaw(problem) for problem in read.problems]
    for name in _CLIENTS_OWN:
        if name in read.value:
            del read.value[name]
            flaws.append(Flaw.error("field", (name,), "is not for specifications: the client sets it", "remove it"))
    return SpecFields(read.value, flaws, read.written)


def _flaw(problem: MessageProblem) -> Flaw:
    if problem.rule is not MessageRule.UNKNOWN:
        return Flaw.error(_RULES.get(problem.rule, "field"), problem.at, problem.why, problem.fix)
    if len(problem.at) == 1 and problem.at[0] in _NEWER:
        version = _NEWER[problem.at[0]]
        why = f"only Pachyderm {version} and later know this field, and lookalike sends 2.7's messages"
        return Flaw.error("field", problem.at, why, "remove it, or create this pipeline with pachctl")
    why = "Pachyderm does not know this field here and would silently drop it"
    return Flaw.error("field", problem.at, why, problem.fix or "remove it")
