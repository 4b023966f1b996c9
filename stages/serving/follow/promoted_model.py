"""The classifier that answers at a moment, as one immutable value: the promoted model, and all that it was made from.

A request takes one and answers from it alone, so that no answer mixes two models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from stages.classify.training.run_records import backbone_data
from stages.record.framing import Framing

if TYPE_CHECKING:  # they import TensorFlow, and the service listens before that
    from stages.backbone.embedder import Embedder
    from stages.classify.classifier import Classifier


@dataclass(frozen=True)
class ModelCommits:
    """The ids of the commits that a model comes from: of `select` itself, and of what that was made from: `labelled`,
    `labels`, `parameters`, `images` and `models`; "" where the provenance does not tell. project: Pachyderm's."""

    project: str
    select: str
    labelled: str = ""
    labels: str = ""
    parameters: str = ""
    library: str = ""
    model: str = ""

    def as_data(self) -> Mapping[str, str]:
        """The same for an answer in JSON."""
        return asdict(self)


@dataclass(frozen=True)
class PromotedModel:
    """A promoted model. sha256: of its file, 64 hex digits. embedder: of the vectors that it takes; None for a model
    that takes pictures. device: the kind of device that computes, "cpu" or the name of a GPU."""

    commits: ModelCommits
    classifier: Classifier
    sha256: str
    embedder: Embedder | None
    device: str

    @property
    def framing(self) -> Framing:
        """The square that its pictures are brought into."""
        backbone = self.classifier.chosen.origin
        return Framing(backbone.image_size, backbone.fit)

    def origin(self) -> dict[str, Any]:
        """Where its answers come from: commits, model and device, in JSON's types."""
        classifier = self.classifier
        return {
            "commits": self.commits.as_data(),
            "model": {
                "run": classifier.chosen.run,
                "sha256": self.sha256,
                "takes": classifier.chosen.takes,
                "labels": len(classifier.chosen.labels),
                "backbone": backbone_data(classifier.chosen.origin),
            },
            "devices": {"service": self.device},
        }

    def card(self) -> dict[str, Any]:
        """Its labels, and how well it knows them, in JSON's types."""
        chosen = self.classifier.chosen
        return {
            **self.origin(),
            "labels": list(chosen.labels),
            "cross_validation": asdict(chosen.cross_validation),
            "held_out": None if chosen.held_out is None else asdict(chosen.held_out),
        }
