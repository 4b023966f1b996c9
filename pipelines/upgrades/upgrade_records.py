"""The record of an upgrade, in an annotation of each pipeline that it sent: the versions that ran before.

Pachyderm keeps every version of a pipeline, so the commits of their specifications are all that the way back needs.
Each of the pipelines has the whole record: one that is left is enough. Upgrades are numbered, not dated: clocks differ.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.client.deployment.deployment import UPGRADE


@dataclass(frozen=True, slots=True)
class UpgradeRecord:
    """number: of the upgrade, from 1. before: the commit of the specification that each of its pipelines had, by name;
    "" for one that it created."""

    number: int
    before: Mapping[str, str]


def read(info: Any) -> UpgradeRecord | None:
    """The record of a deployed pipeline, given as a PipelineInfo with details; None if it has none that is valid."""
    try:
        found = json.loads(info.details.metadata.annotations.get(UPGRADE, ""))
        return UpgradeRecord(int(found["number"]), {str(name): str(commit) for name, commit in found["before"].items()})
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def last(infos: Iterable[Any]) -> UpgradeRecord | None:
    """The record of the last upgrade of these pipelines; None if there was none, or if all of it was taken back."""
    return max((each for each in map(read, infos) if each), key=lambda each: each.number, default=None)


def write(request: Any, record: UpgradeRecord) -> None:
    """Puts a record into a CreatePipelineRequest."""
    text = json.dumps({"number": record.number, "before": dict(record.before)}, sort_keys=True, separators=(",", ":"))
    request.metadata.annotations[UPGRADE] = text
