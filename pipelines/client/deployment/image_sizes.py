"""The size of pictures as the deployed pipelines have it: IMAGE_SIZE of those that run the stage preprocess.

A push of a backbone can set it. Then an annotation of the pipeline keeps the size that its specification states, and a
later deployment leaves the pushed size alone until somebody changes that of the specification.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.specifications.pipeline_specs import deployed_request
from stages.datum.stage_version import STAGE

IMAGE_SIZE = "IMAGE_SIZE"

SPECIFIED = "lookalike/specified-image-size"
"""The pod annotation that holds the size of the specification, while a pushed one is in force."""


def sizes(infos: Iterable[Any]) -> dict[str, int]:
    """The size, in pixels, of each of these pipelines that has one, given as PipelineInfos with details."""
    found = {info.pipeline.name: _size(info.details.transform) for info in infos}
    return {name: size for name, size in found.items() if size}


def resized(info: Any, size: int) -> Any:
    """The CreatePipelineRequest that makes a deployed pipeline compute everything again in this size, and changes
    nothing else of it."""
    request = deployed_request(info)
    request.update, request.reprocess = True, True
    _set(request, size, request.metadata.annotations.get(SPECIFIED) or request.transform.env[IMAGE_SIZE])
    return request


def keep_pushed(request: Any, info: Any) -> int | None:
    """Gives the request of a specification the size that was pushed to the deployed pipeline, unless the specification
    has changed its own since; returns that size, None if there is none to keep."""
    specified = info.details.metadata.annotations.get(SPECIFIED, "")
    pushed = _size(info.details.transform)
    if not pushed or not specified or request.transform.env.get(IMAGE_SIZE) != specified:
        return None
    _set(request, pushed, specified)
    return pushed


def mark(request: Any, specified: str) -> None:
    """Has deployments keep the size that a request has, until the specification states another one than this."""
    request.metadata.annotations[SPECIFIED] = specified


def _set(request: Any, size: int, specified: str) -> None:
    request.transform.env[IMAGE_SIZE] = str(size)
    mark(request, specified)
    if specified == str(size):
        del request.metadata.annotations[SPECIFIED]


def _size(transform: Any) -> int:
    """0 for a transform that has none."""
    env: Mapping[str, str] = transform.env
    text = env.get(IMAGE_SIZE, "").strip()
    return int(text) if env.get(STAGE, "").startswith("preprocess") and text.isdecimal() else 0
