"""Computes vectors of pictures with a loaded backbone, batch by batch. Knows no files, no Keras and none of its
backends."""

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from stages.backbone.backbone_spec import BackboneSpec
from stages.backbone.forward_passes import ForwardPass, ForwardPasses
from stages.datum.contract import StageError
from stages.record.origin import TENSORFLOW

CPU = "cpu"
"""The kind of device of a processor, beside the names of GPUs."""

_MOST_AT_ONCE = 4
"""Most concurrent forward passes on processors: each needs memory of its own."""


def cores() -> int:
    """The processor cores that this process may use."""
    return len(os.sched_getaffinity(0))


def passes_at_once() -> int:
    """The best number of concurrent forward passes on processors. All cores together compute one pass with pauses,
    since its operations wait for one another: two cores with a pass each take two thirds of the time."""
    return min(_MOST_AT_ONCE, cores())


def threads_of_each() -> int:
    """The threads of each of `passes_at_once` concurrent passes."""
    return cores() // passes_at_once()


class Embedder:
    """A callable: uint8 RGB (n, S, S, 3) in, float32 (n, dimension) out, S and dimension as in the spec.

    A vector depends on its picture alone, bit for bit on one machine: see stages.backbone.forward_passes.
    """

    def __init__(
        self,
        forward: ForwardPass,
        spec: BackboneSpec,
        at_once: int = 1,
        device: str = CPU,
        small: ForwardPass | None = None,
        ahead: bool = False,
        backend: str = TENSORFLOW,
    ) -> None:
        """forward: a pass of `spec.batch` pictures. at_once: the number of concurrent passes. device: the kind that
        computes them, see stages.backbone.devices.kind. small: a pass of stages.backbone.forward_passes.FEW pictures,
        which is used if it gives the same bits; None if there is none. ahead: as in stages.backbone.forward_passes.
        backend: the one of stages.record.origin.BACKENDS that computes."""
        self._forward = forward
        self._passes = ForwardPasses(forward, spec.batch, small, ahead)
        self.at_once = at_once
        self.spec = spec
        self.device = device
        self.backend = backend

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Raises StageError if the pictures have another size or the model gives values that are not finite."""
        batch = self.spec.batch
        parts = (pictures[begin : begin + batch] for begin in range(0, len(pictures), batch))
        return np.concatenate([np.empty((0, self.spec.dimension), np.float32), *self.stream(parts)])

    def warm_up(self) -> None:
        """Runs the first forward passes, which are slower than all later ones."""
        size = self.spec.image_size
        self._passes.warm_up(np.zeros((size, size, 3), np.uint8))

    def stream(self, batches: Iterable[NDArray[np.uint8]]) -> Iterator[NDArray[np.float32]]:
        """The vectors of each batch, in order; a batch is at most `spec.batch` pictures.

        Batches are taken ahead and computed in threads: meanwhile the caller can read the next pictures and finish the
        last ones, and a GPU does not have to wait. Raises the same errors as a call.
        """
        under_way: deque[Future[NDArray[np.float32]]] = deque()
        with ThreadPoolExecutor(self.at_once, "forward") as threads:
            for batch in batches:
                under_way.append(threads.submit(self._pass, batch))
                if len(under_way) > self.at_once:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()

    def _pass(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        size = self.spec.image_size
        if pictures.dtype != np.uint8 or pictures.shape[1:] != (size, size, 3):
            raise StageError(
                f"the pictures are {pictures.dtype} {pictures.shape[1:]}, but {self.spec.name} takes uint8 "
                f"({size}, {size}, 3)"
            )
        vectors = self._passes(pictures).astype(np.float32, copy=False)
        if not np.isfinite(vectors).all():
            raise StageError(
                f"the model {self.spec.name} gives values that are not finite (NaN or infinity) for some picture; "
                "such vectors have no distances: push another model"
            )
        return vectors
