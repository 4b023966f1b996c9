"""The record of a run, `run.json`: a training with its parameters and what it reached, or the reason why it failed.

Only the standard library: the command lists runs. Knows no training and no files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from stages.classify.training import training_parameters
from stages.classify.training.training_parameters import InputKind, TrainingParameters
from stages.datum.contract import StageError
from stages.quality import wilson_interval
from stages.record.origin import TENSORFLOW, Origin

FILE, MODEL, PREDICTIONS = "run.json", "model.keras", "predictions.parquet"
"""The files of a run; a failed one has the first alone."""

FORMAT = 1
DIGITS = 6
"""Decimal digits of every number in a record."""

CURVES = ("loss", "accuracy", "validation_loss", "validation_accuracy")


class TrainingFailure(Exception):
    """A training that cannot succeed, such as one with a single label. The text is the reason, for people."""


def backbone_data(origin: Origin) -> dict[str, Any]:
    """The network that a classifier stands on, and the framing of its pictures, as JSON values."""
    backend = {} if origin.backend == TENSORFLOW else {"backend": origin.backend}
    return {
        "sha256": origin.model,
        "described": origin.backbone,
        "image_size": origin.image_size,
        "fit": origin.fit,
        "dimension": origin.dimension,
        **backend,
    }


def backbone_of(data: Mapping[str, Any]) -> Origin:
    """The inverse of `backbone_data`. Raises KeyError or TypeError for anything else."""
    found = Origin(data["sha256"], data["fit"], data["image_size"], data["dimension"], data["described"])
    return replace(found, backend=str(data.get("backend", TENSORFLOW)))


@dataclass(frozen=True)
class AccuracyScore:
    """The share of right predictions with its 95 % interval (Wilson)."""

    right: int
    of: int
    accuracy: float
    low: float
    high: float

    @classmethod
    def counted(cls, right: int, of: int) -> AccuracyScore | None:
        """The score of `right` of `of` predictions; None without predictions."""
        return cls(right, of, *(round(each, DIGITS) for each in wilson_interval.wilson(right, of))) if of else None


@dataclass(frozen=True)
class PictureCounts:
    """Labelled pictures: those trained on, those held out (both of labels that can be learnt), and those of labels that
    cannot."""

    training: int = 0
    held_out: int = 0
    unlearnable: int = 0


@dataclass(frozen=True)
class TrainingRun:
    """One run.

    parameters: None if they could not be read. failure: the reason, "" for a run with a model. labels: sorted, in the
    order of the model's outputs. takes: what the model takes. unlearnable: the training pictures of each label that has
    too few of them. temperature: that divides the logits. ece: the expected calibration error of the out-of-fold
    probabilities. curves: of CURVES, a number for each epoch, the mean over the folds. weights: numbers that were
    trained. device: "cpu" or the name of a GPU. Fields without a value in a failed run have their defaults.
    notes: what people should know about the training, in sentences.
    """

    name: str
    parameters: TrainingParameters | None
    failure: str = ""
    labels: Sequence[str] = ()
    takes: InputKind = "vectors"
    pictures: PictureCounts = PictureCounts()
    unlearnable: Mapping[str, int] = field(default_factory=dict)
    cross_validation: AccuracyScore | None = None
    held_out: AccuracyScore | None = None
    temperature: float = 1.0
    ece: float | None = None
    curves: Mapping[str, Sequence[float]] = field(default_factory=dict)
    weights: int = 0
    origin: Origin | None = None
    device: str = ""
    held_out_share: float = 0.0
    notes: Sequence[str] = ()

    def as_data(self) -> dict[str, Any]:
        """The record as JSON values; numbers are rounded to DIGITS."""
        data = asdict(replace(self, parameters=None, origin=None))
        del data["origin"]
        return data | {
            "format": FORMAT,
            "parameters": None if self.parameters is None else self.parameters.as_data(),
            "labels": list(self.labels),
            "temperature": round(self.temperature, DIGITS),
            "ece": None if self.ece is None else round(self.ece, DIGITS),
            "curves": {
                name: [round(each, DIGITS) for each in self.curves[name]] for name in CURVES if name in self.curves
            },
            "backbone": None if self.origin is None else backbone_data(self.origin),
            "held_out_share": round(self.held_out_share, DIGITS),
            "notes": list(self.notes),
        }


def known_record(content: bytes | str, file: str, advice: str = "") -> dict[str, Any]:
    """The values of a record of this format. Raises StageError for another format, ValueError for what is no record."""
    data: dict[str, Any] = json.loads(content)
    if (found := data.pop("format")) != FORMAT:
        unknown = f"{file} has the format {found}, which this version of lookalike does not know"
        raise StageError(f"{unknown}: use the version that wrote it{advice}")
    return data


def format_run(run: TrainingRun) -> bytes:
    """The content of run.json; equal runs give equal bytes."""
    return (json.dumps(run.as_data(), indent=1, sort_keys=True) + "\n").encode("ascii")


def parse(content: bytes | str) -> TrainingRun:
    """The run in the content of run.json. Raises StageError for anything else, and for another format."""
    try:
        data = known_record(content, FILE, ", or train again with `lookalike deploy --reprocess train`")
        backbone = data.pop("backbone")
        return TrainingRun(
            **data
            | {
                "parameters": _parameters(data["name"], data["parameters"]),
                "labels": tuple(data["labels"]),
                "notes": tuple(data["notes"]),
                "pictures": PictureCounts(**data["pictures"]),
                "cross_validation": _score(data["cross_validation"]),
                "held_out": _score(data["held_out"]),
                "origin": None if backbone is None else backbone_of(backbone),
            }
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise StageError(
            f"{FILE} is not the record of a run that lookalike wrote ({type(error).__name__}: {error}); write it again "
            "with `lookalike deploy --reprocess train`"
        ) from error


def _parameters(name: str, data: Any) -> TrainingParameters | None:
    return (
        None
        if data is None
        else training_parameters.parse(f"{name}{training_parameters.SUFFIX}", json.dumps(data).encode())
    )


def _score(data: Any) -> AccuracyScore | None:
    return None if data is None else AccuracyScore(**data)
