"""Specifications as comparable values: one that is written, and one that runs, without what Pachyderm adds. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.client.deployment.deployment import OWN_ANNOTATIONS, WRITTEN
from pipelines.specifications.pipeline_specs import deployed_request

_ADDED: Mapping[str, Any] = {
    "datum_tries": "3",
    "output_branch": "master",
    "parallelism_spec": {"constant": "1"},
    "reprocess_spec": "until_success",
}
"""Pachyderm's defaults, in the details of pipelines that state none."""

_NOT_STATED = ("pipeline", "salt", "spec_commit", "update", "reprocess", "description", "details_json")
"""Fields that say nothing about the way a pipeline works."""

_OF_PFS = ("project", "repo_type", "commit")
_OF_CRON = ("project", "repo", "commit", "start")
"""Members of inputs that Pachyderm fills in."""


def from_spec(document: Mapping[str, Any]) -> dict[str, Any]:
    """A specification's document in the form that `from_deployed` has. Raises ValueError for an invalid one."""
    request = pps_pb2.CreatePipelineRequest()
    json_format.ParseDict(dict(document), request)
    return running_request(request)


def from_deployed(info: Any) -> dict[str, Any]:
    """A deployed pipeline, given as a PipelineInfo with details, as a document with names in snake_case: without our
    annotations, Pachyderm's defaults, the name and the description."""
    return running_request(deployed_request(info))


def written(info: Any) -> dict[str, Any] | None:
    """The specification of a deployed pipeline as it was in its file; None if it was deployed by other means, or by a
    lookalike that did not record it."""
    try:
        found = json.loads(info.details.metadata.annotations.get(WRITTEN, ""))
        return from_spec(found) if isinstance(found, dict) else None
    except (ValueError, json_format.ParseError):
        return None


def running_request(request: Any) -> dict[str, Any]:
    """The same as `from_deployed`, of a CreatePipelineRequest."""
    document: dict[str, Any] = json_format.MessageToDict(request, preserving_proto_field_name=True)
    for name in _NOT_STATED:
        document.pop(name, None)
    for name, value in _ADDED.items():
        if document.get(name) == value:
            del document[name]
    annotations = document.get("metadata", {}).get("annotations", {})
    for name in OWN_ANNOTATIONS:
        annotations.pop(name, None)
    metadata = {name: value for name, value in document.pop("metadata", {}).items() if value}
    service = document.get("service", {})
    if service.get("type") == "NodePort":
        del service["type"]
    inputs = {"input": _input(document["input"])} if "input" in document else {}
    return {**document, **inputs, **({"metadata": metadata} if metadata else {})}


def _input(tree: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind, member in tree.items():
        if kind == "pfs":
            leaf = {name: value for name, value in member.items() if name not in _OF_PFS}
            found[kind] = {"name": leaf.get("repo", ""), "branch": "master", **leaf}
        elif kind == "cron":
            found[kind] = {name: value for name, value in member.items() if name not in _OF_CRON}
        elif isinstance(member, list):
            found[kind] = sorted(map(_input, member), key=_first_name)  # as Pachyderm sorts them
        else:
            found[kind] = member
    return found


def _first_name(tree: Mapping[str, Any]) -> str:
    """The name by which a member of a combination is sorted: its first leaf's."""
    for member in tree.values():
        return _first_name(member[0]) if isinstance(member, list) else str(member.get("name", ""))
    return ""
