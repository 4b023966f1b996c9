"""Specifications, and pipelines as Pachyderm describes them, for tests of comparisons that need no server."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.client.deployment.deployment import WRITTEN
from pipelines.specifications.drafts import SpecDraft, SpecPatch
from speclang.merge_patches import merge

SPEC: Mapping[str, Any] = {
    "pipeline": {"name": "search"},
    "description": "Finds.",
    "input": {"pfs": {"name": "index", "repo": "index", "branch": "master", "glob": "/*"}},
    "transform": {
        "image": "lookalike-cpu:0.1.0",
        "cmd": ["python3", "-m", "stages.search"],
        "env": {"LOOKALIKE_STAGE": "search-1", "K": "3"},
    },
    "resource_requests": {"cpu": 1.0, "memory": "1Gi"},
    "resource_limits": {"gpu": {"type": "nvidia.com/gpu", "number": 1}},
    "datum_tries": 2,
}

ADDED = {
    "salt": "abc",
    "created_at": "2026-11-01T00:00:00Z",
    "output_branch": "master",
    "reprocess_spec": "until_success",
    "parallelism_spec": {"constant": 1},
}
"""What a server adds."""


def env(**variables: str) -> dict[str, Any]:
    """The patch of these variables."""
    return {"transform": {"env": variables}}


def changed(*patches: Mapping[str, Any]) -> dict[str, Any]:
    """The specification with patches."""
    document: Any = SPEC
    for patch in patches:
        document = merge(document, patch)
    return dict(document)


def draft(*patches: Mapping[str, Any]) -> SpecDraft:
    """The same as a draft of a file."""
    return SpecDraft(Path("search.json"), changed(*patches), {})


def on_top(of: SpecDraft, *patches: Mapping[str, Any]) -> SpecDraft:
    """A draft with overlays."""
    for patch in patches:
        of = of.patched(SpecPatch(patch))
    return of


def deployed(document: Mapping[str, Any], written: Mapping[str, Any] | None = None) -> Any:
    """The PipelineInfo of a deployed specification. written: as the deployment recorded it, None if it did not."""
    found = merge(document, ADDED)
    found["input"]["pfs"]["project"] = "default"
    if written is not None:
        found = merge(found, {"metadata": {"annotations": {WRITTEN: json.dumps(written)}}})
    info = pps_pb2.PipelineInfo()
    info.pipeline.name = "search"
    json_format.ParseDict(found, info.details, ignore_unknown_fields=True)
    return info
