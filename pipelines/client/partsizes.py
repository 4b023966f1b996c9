"""The numbers that grow with a library as the deployed pipelines have them: the digits of a segment, in features, and
the pictures of a part, in preprocess.

`lookalike upgrade --sizes` sets them. Then an annotation of the pipeline keeps the value that its specification states,
and a later deployment leaves the other one alone until somebody changes that of the specification: to go back by
mistake would compute the backbone for every picture again.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.specifications import proportions
from stages import parts

DIGITS = proportions.DIGITS
PART = parts.VARIABLE

NAMES = (DIGITS, PART)
"""The variables."""

SPECIFIED = "lookalike/specified-sizes"
"""The pod annotation that holds the values of the specification, as JSON, while others are in force."""

_STAGE = "LOOKALIKE_STAGE"


def part(infos: Iterable[Any]) -> int:
    """About how many pictures make a part in deployed pipelines, given as PipelineInfos with details."""
    return max((_number(info, PART, parts.PART) for info in infos if _runs(info, "preprocess")), default=parts.PART)


def digits(infos: Iterable[Any]) -> int:
    """The digits of an id that make a segment, in the same."""
    return max((_number(info, DIGITS, 1) for info in infos if _runs(info, "features")), default=1)


def keep(request: Any, info: Any) -> dict[str, str]:
    """Gives the request of a specification the sizes that the deployed pipeline has instead of those stated, unless the
    specification has changed its own since; returns them by name."""
    specified = _specified(info.details.metadata.annotations.get(SPECIFIED, ""))
    env = request.transform.env
    if not specified or any(env.get(name) != value for name, value in specified.items()):
        return {}
    kept = {name: info.details.transform.env.get(name, value) for name, value in specified.items()}
    env.update(kept)
    mark(request, specified)
    return kept


def mark(request: Any, specified: Mapping[str, str]) -> None:
    """Has deployments keep the sizes that a request has, until the specification states others than these."""
    request.metadata.annotations[SPECIFIED] = json.dumps(specified, sort_keys=True)


def _specified(text: str) -> dict[str, str]:
    try:
        found = json.loads(text or "{}")
        return {str(name): str(value) for name, value in found.items()}
    except (ValueError, AttributeError):
        return {}


def _runs(info: Any, stage: str) -> bool:
    return bool(info.details.transform.env.get(_STAGE, "").startswith(f"{stage}-"))


def _number(info: Any, name: str, default: int) -> int:
    text = info.details.transform.env.get(name, "").strip()
    return int(text) if text.isascii() and text.isdecimal() and int(text) else default
