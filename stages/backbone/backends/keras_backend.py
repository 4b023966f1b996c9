"""The backend that Keras will have in this process, found without an import of either."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from stages.datum.contract import StageError
from stages.record.origin import BACKENDS, TENSORFLOW

VARIABLE = "KERAS_BACKEND"


def chosen(environment: Mapping[str, str]) -> str:
    """The name of the backend, by the variable or by Keras's own configuration; "" if that cannot be read."""
    return environment.get(VARIABLE) or _configured(environment)


def check(environment: Mapping[str, str]) -> None:
    """Raises StageError, with a way out, if Keras cannot have the chosen backend, or features cannot compute on it."""
    name = chosen(environment)
    if not name or (name in BACKENDS and find_spec(name) is not None):
        return
    there = next((other for other in BACKENDS if find_spec(other) is not None), "")
    way = there and (
        f"set {VARIABLE}={there} for {BACKENDS[there]}: in the specs of features and features-queries, or in the "
        "environment of this command"
    )
    if name not in BACKENDS:
        raise StageError(f"{VARIABLE}={name}: must be one of {', '.join(BACKENDS)}{there and f'; {way}'}")
    raise StageError(
        f"Keras is to compute on {BACKENDS[name]}, which is not installed here: install it{there and f', or {way}'}"
    )


def check_training(environment: Mapping[str, str]) -> None:
    """Raises StageError unless Keras computes on TensorFlow, as trainings do."""
    name = chosen(environment)
    if name in BACKENDS and name != TENSORFLOW:
        raise StageError(
            f"classifiers are trained on TensorFlow alone, and {VARIABLE} is {name}: set {VARIABLE}={TENSORFLOW} in "
            "the spec of train"
        )


def _configured(environment: Mapping[str, str]) -> str:
    """The backend in Keras's own configuration."""
    home = Path(environment.get("KERAS_HOME") or Path.home() / ".keras")
    try:
        return str(json.loads((home / "keras.json").read_text()).get("backend", TENSORFLOW))
    except FileNotFoundError:
        return TENSORFLOW
    except (OSError, ValueError, AttributeError):
        return ""
