"""The way of a question for labels: its pictures seen, their probabilities computed, the answer put together.

Questions that come at the same time share forward passes. One promoted model answers all of a question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stages.quality.entry_answers import shortest
from stages.record.framing import Framing, Pixels
from stages.serving.answer.batcher import Batcher
from stages.serving.answer.metrics import ServiceMetrics
from stages.serving.answer.query_decoder import DecodeContext, DecodeSlots, PictureUpload
from stages.serving.answer.query_embedder import WAITING, QueryEmbedder
from stages.serving.answer.request_schema import ClassifyRequest
from stages.serving.answer.search_answer import QueryPicture
from stages.serving.follow.promoted_model import PromotedModel
from stages.serving.follow.refusals import Refusal
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
        self._state = state
        self._library = library
        self._seeing = seeing
        self.passes = Batcher[tuple["Classifier", InputArray], ProbabilityArray](
            "classify", _classified, _ROWS_AT_ONCE, WAITING, metrics.batches.labels("classify").observe
        )

    async def close(self) -> None:
        """Ends its thread."""
        await self.passes.close()

    def promoted(self) -> PromotedModel:
        """The model that answers now. Raises Refusal while there is none."""
        state = self._state()
        if state.snapshot is not None:
            return state.snapshot
        if state.kind == "empty":
            raise Refusal(409, "no-model", state.message)
        raise Refusal(503, state.kind, state.message, 2 if state.kind == "loading" else 10)

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
                values = await self._values(model, library, seen)
            async with self._seeing.timed("classify", seconds):
                given = model.classifier, np.stack(values)
                probabilities = await self.passes.ask(model.classifier, given, len(values))
        pictures = [picture for picture, _ in seen]
        return {**answer(model, question.top, pictures, probabilities), "seconds": seconds}

    async def _values(
        self, model: PromotedModel, library: Snapshot | None, seen: Sequence[tuple[QueryPicture, Pixels | None]]
    ) -> Sequence[InputArray]:
        """What the model takes for each picture: its pixels, or its vector, computed or as the library has it."""
        new = [pixels for _, pixels in seen if pixels is not None]
        if model.embedder is None:
            return new
        computed = iter(await self._seeing.vectors(model.embedder, new))
        return [next(computed) if pixels is not None else _known(library, picture) for picture, pixels in seen]


def answer(
    model: PromotedModel, top: int, pictures: Sequence[QueryPicture], probabilities: ProbabilityArray
) -> dict[str, Any]:
    """The answer in JSON's types, without its times: for each picture its likeliest labels, those of equal probability
    by name. probabilities: float32 (n, L)."""
    return {
        "pictures": [
            {
                "id": picture.id,
                "name": picture.name,
                "width": picture.width,
                "height": picture.height,
                "known": picture.row is not None,
                "labels": _labels(model.classifier.labels, row.tolist(), top),
            }
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
    ours, theirs = library.library.origin, model.classifier.origin
    same = Framing(ours.image_size, ours.fit) == model.framing
    has_vectors = model.embedder is not None and same and ours.model == theirs.model
    return DecodeContext(model.framing, library.library, None if has_vectors else library.originals)


def _known(library: Snapshot | None, picture: QueryPicture) -> InputArray:
    assert library is not None and picture.row is not None
    vector: InputArray = library.library.vectors(np.array([picture.row], np.int64))[0]
    return vector


def _classified(given: Sequence[tuple[Classifier, InputArray]]) -> list[ProbabilityArray | Exception]:
    """The probabilities of each, computed together."""
    probabilities = given[0][0](np.concatenate([values for _, values in given]))
    ends = np.cumsum([len(values) for _, values in given])
    return list(np.split(probabilities, ends[:-1]))
