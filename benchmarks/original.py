"""The original experiment's specifications and parameters: those of lookalike with the overlay stl10. Measures
nothing."""

from pipelines.library.dataset import OVERLAY
from pipelines.specifications import drafts, overlays, reading
from pipelines.specifications.reading import Spec


def specifications() -> list[Spec]:
    """Those that every library has, upstream first."""
    changed = overlays.apply([overlays.load(OVERLAY)], drafts.find(spec.path for spec in reading.load()))
    return reading.ordered(draft.spec() for draft in changed)


def parameters(pipeline: str) -> dict[str, str]:
    """The variables of a pipeline's stage."""
    (spec,) = (each for each in specifications() if each.name == pipeline)
    return dict(spec.document["transform"]["env"])


def image_size() -> int:
    """The side of its pictures in pixels."""
    return int(parameters("preprocess")["IMAGE_SIZE"])
