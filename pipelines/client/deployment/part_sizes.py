"""The sizes into which deployed pipelines divide a library: the digits of a segment and the buckets, in partition, and
the pictures of a part, in preprocess.

`lookalike upgrade --sizes` sets the digits. Then an annotation of the pipeline keeps the value that its specification
states, and a later deployment leaves the other one alone until somebody changes that of the specification: to go back
by mistake would deal the whole library to its segments again. An upgrade keeps PART in the same way.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.specifications import segment_numbers
from pipelines.specifications.pipeline_specs import leaves
from pipelines.specifications.segment_numbers import SegmentNumbers
from stages.datum.stage_version import STAGE
from stages.record import part_names

DIGITS = segment_numbers.DIGITS
PART = part_names.VARIABLE

NAMES = (DIGITS, PART)
"""The variables."""

SPECIFIED = "lookalike/specified-sizes"
"""The pod annotation that holds the values of the specification, as JSON, while others are in force."""

PARTITION = "partition"
"""The stage that has the segments."""


def part(specs: Iterable[Any]) -> int:
    """About how many pictures make a part in pipelines, given as details of PipelineInfos or as requests."""
    return max(
        (_number(spec, PART, part_names.PART) for spec in specs if _runs(spec, "preprocess")), default=part_names.PART
    )


def numbers(specs: Iterable[Any]) -> SegmentNumbers:
    """The segments and the buckets in the same: those of partition."""
    partitions = [spec for spec in specs if _runs(spec, PARTITION)]
    digits = max((_number(spec, DIGITS, 1) for spec in partitions), default=1)
    globs = [leaf.glob for spec in partitions for leaf in leaves(spec.input)]
    deep = any(sum("*" in level for level in glob.split("/")) > 1 for glob in globs)
    return SegmentNumbers(digits, segment_numbers.MOST_BUCKETS if deep else segment_numbers.BUCKETS)


def keep_deployed(request: Any, info: Any) -> dict[str, str]:
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


def _runs(spec: Any, stage: str) -> bool:
    return bool(spec.transform.env.get(STAGE, "").startswith(f"{stage}-"))


def _number(spec: Any, name: str, default: int) -> int:
    text = spec.transform.env.get(name, "").strip()
    return int(text) if text.isascii() and text.isdecimal() and int(text) else default
