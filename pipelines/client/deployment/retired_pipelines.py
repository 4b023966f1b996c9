"""Retired pipelines: those that an earlier lookalike deployed, and whose stages this one no longer has."""

from collections.abc import Mapping
from typing import Any

from pipelines.client.pipeline_owner import ANNOTATION
from stages.datum.stage_version import STAGE

SUCCESSORS = {"evaluate-sum": "evaluate"}
"""The pipelines that write the output of the retired ones now."""


def retired_among(there: Mapping[str, Any]) -> list[str]:
    """The retired ones among the deployed pipelines, given by name with details. One of that name which runs a stage of
    its owner is not among them."""
    return [name for name in SUCCESSORS if name in there and _is_ours(name, there[name].details)]


def notes(there: Mapping[str, Any]) -> list[str]:
    """The retired ones in words, with the way to delete them."""
    return [
        f"{name} is no longer a pipeline of lookalike, since {SUCCESSORS[name]} writes its output: `lookalike upgrade` "
        "deletes it"
        for name in retired_among(there)
    ]


def _is_ours(name: str, details: Any) -> bool:
    stage, _, version = details.transform.env.get(STAGE, "").rpartition("-")
    return ANNOTATION in details.metadata.annotations and stage == name and version.isdigit()
