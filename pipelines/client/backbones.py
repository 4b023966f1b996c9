"""The backbone that the repo `models` holds, by its description."""

import os
from typing import Literal

from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from stages.backbone.backbone_spec import SPEC_FILE, TEXT_FILE, BackboneSpec, parse_spec
from stages.backbone.catalogue import find
from stages.datum.contract import StageError
from stages.datum.text_format import rounded_time

REPO = "models"

Precision = Literal[
    "float32", "mixed_float16", "mixed_bfloat16"
]  # those of stages.backbone.precision, which needs Keras
_MIXED: tuple[Precision, ...] = ("mixed_float16", "mixed_bfloat16")

_SIZE, _CORES = 224, 2
"""The size of pictures and the cores for which the catalogue states the speed of a backbone."""

_PREPARED = 60.0
"""Pictures a second that one core decodes and scales."""


def current_backbone(models: Repository) -> BackboneSpec | None:
    """The backbone that the repo's master describes; None if it is missing or unreadable."""
    path = f"/{SPEC_FILE}"
    try:
        return parse_spec(models.read(path)) if models.exists(path) else None
    except StageError:  # which is to be replaced
        return None


def describe_commit(connection: Connection, commit: str) -> str:
    """The backbone of a commit of `models`, for people, with the start of its hash and of its text tower's file; "" for
    none."""
    if not commit:
        return ""
    models = Repository(connection, REPO, commit)
    spec, words = current_backbone(models), models.find(f"/{TEXT_FILE}")
    with_words = "" if words is None else f" with words {words.hash[:8]}"
    return "" if spec is None else f"{spec.described} {spec.sha256[:8]}{with_words}"


def has_words(models: Repository) -> bool:
    """Whether the model has a text tower, so that texts find pictures."""
    return models.exists(f"/{TEXT_FILE}")


def push_command(spec: BackboneSpec) -> str:
    """The command that pushes a backbone that was pushed by its name."""
    precision = next((each for each in _MIXED if spec.precision.startswith(each.removeprefix("mixed_"))), None)
    options = f" --precision {precision}" if precision else ""
    return f"lookalike model push {spec.name} --image-size {spec.image_size}{options}"


def vector_time(pictures: int, backbone: str, size: int, prepared: bool) -> str:
    """The time in words for pictures of a size in pixels; "" for a backbone whose speed is not known. prepared: the
    pictures are decoded as well."""
    entry = find(backbone)
    if entry is None or entry.rate is None:
        return ""
    cores = len(os.sched_getaffinity(0))
    seconds = pictures / entry.rate * (size / _SIZE) ** 2 * _CORES / cores
    return rounded_time(seconds + (pictures / (_PREPARED * cores) if prepared else 0.0))
