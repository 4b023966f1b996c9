"""The parameters of a training: a file of the repo `parameters`, and its values with their defaults and ranges.

Only the standard library: the command reads files before it puts them. Knows no training.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal

from stages.classify.training import json_fields
from stages.classify.training.json_fields import FieldError, number, one_of, ruled, ruled_object, whole
from stages.datum.contract import StageError

SUFFIX = ".json"

HEADS = ("linear", "mlp")
InputKind = Literal["vectors", "pictures"]

CLASS_WEIGHTS = ("none", "balanced")

FOLDS = (2, 20)
"""Fewest and most folds of a cross-validation."""

_SCHEMES = ("s3", "gs", "az", "file")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def _widths(name: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= 4:
        raise FieldError(f"{name} must be a list of 1 to 4 widths, such as [256]; it is {json_fields.shown(value)}")
    width = whole(1, 8192)
    return tuple(width(f"each width in {name}", each) for each in value)


def _layers(name: str, value: Any) -> int | None:
    if value == "all":
        return None
    if type(value) is not int or not 1 <= value <= 100_000:
        raise FieldError(
            f'{name} must be "all" or the number of last layers to train; it is {json_fields.shown(value)}'
        )
    return value


def _bucket(name: str, value: Any) -> str:
    if value == "":
        return ""
    scheme, separator, rest = value.partition("://") if isinstance(value, str) else ("", "", "")
    if not separator or scheme not in _SCHEMES or not rest.strip("/") or any(each <= " " for each in rest):
        urls = ", ".join(f"{each}://" for each in _SCHEMES)
        raise FieldError(f"{name} must be the URL of a bucket ({urls}), or empty; it is {json_fields.shown(value)}")
    return str(value)


@dataclass(frozen=True)
class AugmentationParameters:
    """Random changes of the pictures of a training, each in every picture anew: mirrored (flip), moved by a share of
    the side (shift), enlarged or reduced by a share (zoom), turned by a share of a full turn (rotation), brighter or
    darker, with more or less contrast, by a share."""

    flip: bool = ruled(True, json_fields.flag)
    shift: float = ruled(0.1, number(0, 0.5))
    zoom: float = ruled(0.1, number(0, 0.9))
    rotation: float = ruled(0.0, number(0, 0.5))
    brightness: float = ruled(0.1, number(0, 1))
    contrast: float = ruled(0.1, number(0, 1))


@dataclass(frozen=True)
class MovementParameters(AugmentationParameters):
    """Changes that leave a written character what it is: small movements, no mirror."""

    flip: bool = ruled(False, json_fields.flag)
    rotation: float = ruled(0.03, number(0, 0.5))
    brightness: float = ruled(0.0, number(0, 1))
    contrast: float = ruled(0.0, number(0, 1))


@dataclass(frozen=True)
class ConvolutionalParameters:
    """The training of a small convolutional network on pixels, without the backbone.

    filters: of the convolutions, each of which halves the picture's sides. dropout: before the head. cross_validation:
    whether each fold is left out in turn, and a last network trained on all pictures; otherwise one network is trained,
    on all folds but the first, and validated on that.
    """

    group: ClassVar[str] = "convolutional"

    filters: tuple[int, ...] = ruled((32, 64, 128), _widths)
    dropout: float = ruled(0.3, number(0, 0.9))
    epochs: int = ruled(10, whole(1, 1000))
    learning_rate: float = ruled(0.003, number(0, 1, above=True))
    weight_decay: float = ruled(0.0001, number(0, 1))
    batch_size: int = ruled(64, whole(1, 1024))
    cross_validation: bool = ruled(True, json_fields.flag)
    augmentation: MovementParameters = ruled_object(MovementParameters)  # noqa: RUF009 (a field)


@dataclass(frozen=True)
class FineTuneParameters:
    """The training of the whole network, or of its last layers, on pixels.

    layers: the number of last layers that are trained, None for all. checkpoints: the URL of a bucket, "" for none.
    checkpoint_steps: steps between two checkpoints, 0 for one after each epoch.
    """

    group: ClassVar[str] = "fine_tune"

    epochs: int = ruled(5, whole(1, 1000))
    learning_rate: float = ruled(0.0001, number(0, 1, above=True))
    weight_decay: float = ruled(0.0001, number(0, 1))
    batch_size: int = ruled(32, whole(1, 1024))
    layers: int | None = ruled(None, _layers)
    augmentation: AugmentationParameters = ruled_object(AugmentationParameters)  # noqa: RUF009 (a field)
    checkpoints: str = ruled("", _bucket)
    checkpoint_steps: int = ruled(0, whole(0, 1_000_000))


@dataclass(frozen=True)
class TrainingParameters:
    """The parameters of one run, which has the name of their file without its ending.

    hidden: widths of the layers of a head "mlp"; dropout: after each of them. epochs: passes over the training
    pictures. weight_decay: of AdamW. class_weight: "balanced" gives all labels the same weight. folds: of the
    cross-validation. fine_tune, convolutional: at most one of them; both None for a head on vectors alone.
    """

    name: str
    head: str = ruled("linear", one_of(HEADS))
    hidden: tuple[int, ...] = ruled((256,), _widths)
    dropout: float = ruled(0.0, number(0, 0.9))
    epochs: int = ruled(100, whole(1, 10_000))
    learning_rate: float = ruled(0.003, number(0, 10, above=True))
    weight_decay: float = ruled(0.0001, number(0, 1))
    label_smoothing: float = ruled(0.0, number(0, 0.5))
    batch_size: int = ruled(256, whole(1, 65_536))
    class_weight: str = ruled("none", one_of(CLASS_WEIGHTS))
    folds: int = ruled(5, whole(*FOLDS))
    seed: int = ruled(0, whole(0, 2**31 - 1))
    fine_tune: FineTuneParameters | None = ruled_object(FineTuneParameters, or_null=True)  # noqa: RUF009 (a field)
    convolutional: ConvolutionalParameters | None = ruled_object(ConvolutionalParameters, or_null=True)  # noqa: RUF009 (a field)

    @property
    def takes(self) -> InputKind:
        """The input of the network."""
        return "vectors" if self.fine_tune is None and self.convolutional is None else "pictures"

    def as_data(self) -> dict[str, Any]:
        """All fields of the file with their values, as JSON values; `parse` reads them back."""
        data = asdict(replace(self, fine_tune=None))
        del data["name"]
        if self.convolutional is None:
            del data["convolutional"]
        else:
            data["convolutional"]["filters"] = list(self.convolutional.filters)
        data["hidden"] = list(self.hidden)
        if self.fine_tune is not None:
            tune = asdict(self.fine_tune)
            data["fine_tune"] = tune | {"layers": "all" if self.fine_tune.layers is None else self.fine_tune.layers}
        return data


def run_name(file: str) -> str:
    """The name of the run of a file of parameters. Raises StageError for a name that no such file has."""
    stem = file.removesuffix(SUFFIX)
    if stem == file or not _NAME.fullmatch(stem):
        raise StageError(
            f"{file} is not the name of a file of parameters: it must end in {SUFFIX} and have at most 100 letters, "
            "digits, dots, hyphens and underscores before that, such as linear.json"
        )
    return stem


def parse(name: str, content: bytes) -> TrainingParameters:
    """The parameters in a file, strictly read. name: the file's, such as linear.json.

    Raises StageError, which names the field and its range, for a bad name, invalid JSON, an unknown field (with the
    nearest name), a field that is there twice, a value of another kind or outside of its range, and for NaN.
    """
    run = run_name(name)
    try:
        found = json_fields.read(json_fields.loads(content), TrainingParameters)
        _together(found)
    except FieldError as reason:
        raise StageError(f"{name}: {reason}") from reason
    return TrainingParameters(run, **found)


def format_parameters(parameters: TrainingParameters) -> bytes:
    """The content of a file of these parameters, with all defaults; `parse` reads it back."""
    return (json.dumps(parameters.as_data(), indent=2) + "\n").encode("ascii")


def _together(found: dict[str, Any]) -> None:
    """Raises FieldError for fields that have no effect beside the others: they would be dropped silently."""
    if found["head"] == "linear":
        for name in ("hidden", "dropout"):
            if found[name] != getattr(TrainingParameters, name):
                raise FieldError(f'{name} is a parameter of the head mlp: add "head": "mlp", or remove {name}')
    if found["convolutional"] is not None:
        if found["fine_tune"] is not None:
            raise FieldError("fine_tune and convolutional are two kinds of training: remove one of them")
        for name in ("epochs", "learning_rate", "weight_decay", "batch_size"):
            if found[name] != getattr(TrainingParameters, name):
                raise FieldError(f"{name} has no effect beside convolutional: use convolutional.{name}")
    tune = found["fine_tune"]
    if tune is not None and tune.checkpoint_steps and not tune.checkpoints:
        raise FieldError(
            "fine_tune.checkpoint_steps needs fine_tune.checkpoints, the URL of a bucket such as s3://bucket/runs"
        )
