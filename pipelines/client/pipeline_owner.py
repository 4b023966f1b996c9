"""The pipelines of lookalike among all of a project, which others may run beside them. Knows no server."""

from collections.abc import Mapping
from typing import Any

from stages.datum.stage_version import STAGE

ANNOTATION = "lookalike/spec-sha256"
"""The pod annotation that holds the fingerprint of a pipeline's specification."""


def is_own(info: Any) -> bool:
    """Whether a pipeline is lookalike's, deployed by it or, from the same specification, by pachctl. info: a
    PipelineInfo with details."""
    return ANNOTATION in info.details.metadata.annotations or STAGE in info.details.transform.env


def own(infos: Mapping[str, Any]) -> dict[str, Any]:
    """Those of pipelines by name that are lookalike's."""
    return {name: info for name, info in infos.items() if is_own(info)}
