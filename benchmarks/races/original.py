"""The original experiment's specifications and parameters: those of lookalike with the overlay stl10. Measures
nothing."""

from collections.abc import Sequence

from pipelines.client.deployment.image_sizes import IMAGE_SIZE
from pipelines.library.datasets.stl10 import OVERLAY
from pipelines.specifications import drafts, overlays, pipeline_specs, variables
from pipelines.specifications.pipeline_specs import PipelineSpec


def specifications(side: int | None = None) -> list[PipelineSpec]:
    """Those that every library has, upstream first. side: that of the pictures in pixels; by default, and for its own,
    the original experiment's, and for any other the specifications without its overlay."""
    found = drafts.find(spec.path for spec in pipeline_specs.load())
    changed = overlays.apply([overlays.load(OVERLAY)], found)
    specs = pipeline_specs.ordered(draft.spec() for draft in changed)
    if side is None or side == _side(specs):
        return specs
    return pipeline_specs.ordered(draft.spec() for draft in variables.apply([f"{IMAGE_SIZE}={side}"], found))


def parameters(pipeline: str) -> dict[str, str]:
    """The variables of a pipeline's stage."""
    (spec,) = (each for each in specifications() if each.name == pipeline)
    return dict(spec.document["transform"]["env"])


def image_size() -> int:
    """The side of its pictures in pixels."""
    return _side(specifications())


def _side(specs: Sequence[PipelineSpec]) -> int:
    (spec,) = (each for each in specs if each.name == "preprocess")
    return int(spec.document["transform"]["env"][IMAGE_SIZE])
