"""The way of a question for labels: its pictures seen, their probabilities computed, the answer put together.

Questions that come at the same time share forward passes. One promoted model answers all of a question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stages.quality.entry_answers import shortest
from stages.record.framing import Framing
from stages.serving.answer.batcher import Batcher
from stages.serving.answer.metrics import ServiceMetrics
from stages.serving.answer.query_decoder import DecodeContext, DecodeSlots, PictureUpload
from stages.serving.answer.query_embedder import WAITING, QueryEmbedder, computed_together
from stages.serving.answer.request_schema import ClassifyRequest
from stages.serving.answer.search_answer import QueryPicture
from stages.serving.follow.promoted_model import PromotedModel
from stages.serving.follow.snapshots import Snapshot, SnapshotState

if TYPE_CHECKING:  # it imports TensorFlow, and the service listens before that
    from stages.classify.classifier import Classifier

InputArray = NDArray[Any]
ProbabilityArray = NDArray[np.float32]

_ROWS_AT_ONCE = 32
"""As many as a forward pass takes."""


class ClassifyHandler:
    """Answers from the promoted model of the moment. Belongs to one event loop."""

    def __init__(
        self,
        state: Callable[[], SnapshotState[PromotedModel]],
        library: Callable[[], Snapshot | None],
        metrics: ServiceMetrics,
        seeing: QueryEmbedder,
    ) -> None:
        """library: the snapshot of the moment, whose pictures can be asked about by id; None without one."""
        self.state = state
        self._library = library
        self._seeing = seeing
        self.passes = Batcher[tuple["Classifier", InputArray], ProbabilityArray](
            "classify", computed_together, _ROWS_AT_ONCE, WAITING, metrics.batches.labels("classify").observe
        )

    async def close(self) -> None:
        """Ends its thread."""
        await self.passes.close()

    def promoted(self) -> PromotedModel:
        """The model that answers now. Raises Refusal while there is none."""
        return self.state().answering("no-model")

    async def answer(
        self, question: ClassifyRequest, files: Sequence[PictureUpload], turns: DecodeSlots
    ) -> dict[str, Any]:
        """The answer to a question. turns: those of its request. Raises Refusal."""
        model, library = self.promoted(), self._library()
        asked = question.asked(len(files))
        seconds: dict[str, float] = {}
        async with self._seeing.answering(len(asked), "not-classifiable"):
            async with self._seeing.timed("decode", seconds):
                seen = await self._seeing.pictures(_view(model, library), asked, files, turns)
            async with self._seeing.timed("features", seconds):
                if model.embedder is None:
                    values: InputArray = np.stack([pixels for _, pixels in seen if pixels is not None])
                else:
                    known = None if library is None else library.library
                    values = await self._seeing.vectors(model.embedder, known, seen)
            async with self._seeing.timed("classify", seconds):
                probabilities = await self.passes.ask(model.classifier, (model.classifier, values), len(values))
        pictures = [picture for picture, _ in seen]
        return {**answer(model, question.top, pictures, probabilities), "seconds": seconds}


def answer(
    model: PromotedModel, top: int, pictures: Sequence[QueryPicture], probabilities: ProbabilityArray
) -> dict[str, Any]:
    """The answer in JSON's types, without its times: for each picture its likeliest labels, those of equal probability
    by name. probabilities: float32 (n, L)."""
    return {
        "pictures": [
            {**picture.as_data(), "labels": _labels(model.classifier.chosen.labels, row.tolist(), top)}
            for picture, row in zip(pictures, probabilities, strict=True)
        ],
        "top": top,
        **model.origin(),
    }


def _labels(names: Sequence[str], probabilities: Sequence[float], top: int) -> list[dict[str, Any]]:
    order = sorted(range(len(names)), key=lambda at: (-probabilities[at], names[at]))[:top]
    return [{"label": names[at], "probability": shortest(probabilities[at])} for at in order]


def _view(model: PromotedModel, library: Snapshot | None) -> DecodeContext:
    if library is None:
        return DecodeContext(model.framing, None)
    ours, theirs = library.library.origin, model.classifier.chosen.origin
    same = Framing(ours.image_size, ours.fit) == model.framing
    has_vectors = model.embedder is not None and same and ours.computed_by == theirs.computed_by
    return DecodeContext(model.framing, library.library, library.originals, has_vectors)
