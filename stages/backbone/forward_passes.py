"""Forward passes of full batches, and of few pictures where those give the same bits. Knows no files and no models."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

ForwardPass = Callable[[NDArray[np.uint8]], NDArray[Any]]
"""A forward pass: pictures, always as many, uint8 RGB (batch, S, S, 3), to their vectors, (batch, dimension)."""

FEW = 8
"""Pictures of a small pass. Four already give other bits, on the processors that were tried."""

EVEN = 24
"""Rows of a pass in which none depends on its place: a multiple of six and of eight. oneDNN's dense layers take six
rows at a time on processors with AVX2, and eight with AVX-512, and sum what is left over in another order."""

TRYING = "small-pass"
"""The name of the thread that tries the small pass."""


class ForwardPasses:
    """A callable: n pictures in, 1 to `batch` of them, uint8 RGB (n, S, S, 3); their vectors out, (n, dimension).

    Libraries choose kernels, and so the order of sums, by the shape of a batch. So every pass has the shape of a full
    one, and is filled up, until small passes are found, in this process, to give the same bits. They take less time for
    each picture, since more of what they compute stays in the processor's caches, and a quarter of it for a single one.
    They are tried on pictures of the first call, with the second or before it: a new process that computes a single
    picture has no time for it. May be called from several threads at once.
    """

    def __init__(self, full: ForwardPass, batch: int, small: ForwardPass | None = None, ahead: bool = False) -> None:
        """full: the pass of `batch` pictures. small: that of FEW pictures, None if there is none. ahead: whether a
        thread tries that one right after the first call, since the second may come much later and should not wait."""
        self._full = full
        self._batch = batch
        self._small = small if batch > FEW else None
        self._ahead = ahead
        self._sample: tuple[NDArray[np.uint8], NDArray[Any]] | None = None  # FEW pictures of a full pass, their vectors
        self._same: bool | None = None
        self._trying = threading.Lock()

    def warm_up(self, picture: NDArray[np.uint8]) -> None:
        """Runs the first passes, which are slower than all later ones, with one picture, and tries the small one."""
        if self._small is None:
            self._filled(picture[np.newaxis])
        else:
            with self._trying:
                self._first(picture[np.newaxis])
                self._try(self._small)

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[Any]:
        """Raises what the passes raise."""
        if self._small is None:
            return self._filled(pictures)
        with self._trying:
            if self._same is None and self._sample is None:
                vectors = self._first(pictures)
                if self._ahead:
                    threading.Thread(target=self._try_ahead, args=(self._small,), name=TRYING).start()
                return vectors
            self._try(self._small)
        if not self._same:
            return self._filled(pictures)
        parts = [pictures[begin : begin + FEW] for begin in range(0, len(pictures), FEW)]
        return np.concatenate([_padded(each, FEW, self._small) for each in parts])

    def _filled(self, pictures: NDArray[np.uint8]) -> NDArray[Any]:
        return _padded(pictures, self._batch, self._full)

    def _first(self, pictures: NDArray[np.uint8]) -> NDArray[Any]:
        """The vectors by a full pass, filled up with noise, of which a sample is kept."""
        filled = np.random.default_rng(0).integers(0, 256, (self._batch, *pictures.shape[1:]), np.uint8)
        filled[: len(pictures)] = pictures
        vectors = self._full(filled)
        self._sample = filled[-FEW:].copy(), vectors[-FEW:].copy()
        return vectors[: len(pictures)]

    def _try_ahead(self, small: ForwardPass) -> None:
        with self._trying, suppress(Exception):  # the next call raises it
            self._try(small)

    def _try(self, small: ForwardPass) -> None:
        """Compares small passes with the sample of the full one, once, in two orders: a library may sum the last
        pictures of a batch in another order than the others, and so the same ones of both."""
        if self._sample is None:
            return
        pictures, vectors = self._sample
        self._same = all(_same(small, pictures, vectors, places) for places in (0, FEW // 2))
        self._sample = None
        if not self._same:
            print(f"forward passes of {FEW} pictures give other bits than passes of {self._batch} here: not used")


def even(forward: ForwardPass, pictures: NDArray[np.uint8]) -> bool:
    """Whether a vector has the same bits at every place of a batch, as this full one of different pictures shows. See
    EVEN."""
    vectors = forward(pictures)
    return all(_same(forward, pictures, vectors, places) for places in (1, len(pictures) // 2))


def _same(forward: ForwardPass, pictures: NDArray[np.uint8], vectors: NDArray[Any], places: int) -> bool:
    """Whether the pictures have these vectors, bit by bit, when all are moved by some places."""
    return forward(np.roll(pictures, places, axis=0)).tobytes() == np.roll(vectors, places, axis=0).tobytes()


def _padded(pictures: NDArray[np.uint8], batch: int, forward: ForwardPass) -> NDArray[Any]:
    """The vectors of at most `batch` pictures by one pass."""
    if len(pictures) == batch:
        return forward(pictures)
    filled = np.zeros((batch, *pictures.shape[1:]), np.uint8)
    filled[: len(pictures)] = pictures
    return forward(filled)[: len(pictures)]
