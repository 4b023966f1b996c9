"""The description of a chosen classifier, `labels.json`: what lies beside its model.keras, and explains its outputs.

Only the standard library. Knows no network and no choice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stages.classify.training.run_records import (
    FORMAT,
    AccuracyScore,
    TrainingRun,
    backbone_data,
    backbone_of,
    known_record,
)
from stages.classify.training.training_parameters import InputKind
from stages.datum.contract import StageError
from stages.record.origin import Origin

FILE = "labels.json"


@dataclass(frozen=True)
class ClassifierDescription:
    """The run that was chosen, and its facts.

    labels: of the network's outputs, in their order. takes: its inputs, vectors of the backbone or pictures as the
    backbone takes them. held_out_share: of the pictures that its training did not see; 0 if that is not known.
    """

    run: str
    labels: Sequence[str]
    takes: InputKind
    origin: Origin
    cross_validation: AccuracyScore
    held_out: AccuracyScore | None = None
    held_out_share: float = 0.0

    def as_data(self) -> dict[str, Any]:
        """The description as JSON values."""
        data = asdict(self) | {"labels": list(self.labels), "backbone": backbone_data(self.origin)}
        return {"format": FORMAT, **{name: data[name] for name in data if name != "origin"}}


def of_run(run: TrainingRun) -> ClassifierDescription:
    """The description of a successful run's model. Raises ValueError for a failed one."""
    if run.failure or run.origin is None or run.cross_validation is None:
        raise ValueError(f"the run {run.name} has no model")
    return ClassifierDescription(
        run.name,
        tuple(run.labels),
        run.takes,
        run.origin,
        run.cross_validation,
        run.held_out,
        run.held_out_share,
    )


def format_description(chosen: ClassifierDescription) -> bytes:
    """The content of labels.json; equal descriptions give equal bytes."""
    return (json.dumps(chosen.as_data(), indent=1, sort_keys=True) + "\n").encode("ascii")


def parse(content: bytes | str) -> ClassifierDescription:
    """The description in the content of labels.json. Raises StageError for anything else, and for another format."""
    try:
        data = known_record(content, FILE)
        if data["takes"] not in ("vectors", "pictures") or not all(isinstance(each, str) for each in data["labels"]):
            raise ValueError("a field is of the wrong type")
        origin = backbone_of(data.pop("backbone"))
        return ClassifierDescription(
            **data
            | {
                "labels": tuple(data["labels"]),
                "origin": origin,
                "cross_validation": AccuracyScore(**data["cross_validation"]),
                "held_out": None if data["held_out"] is None else AccuracyScore(**data["held_out"]),
            }
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise StageError(
            f"{FILE} is not the description of a classifier that lookalike wrote ({type(error).__name__}: {error})"
        ) from error
