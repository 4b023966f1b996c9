"""The pictures of a library as points of its map: tiles at all levels of detail, and what lies in an outline.

Points lie in the order of a curve that fills the square (Morton's), so a tile is one run of them, and a tile far away
has counts in a grid in place of points. Knows no layout and no HTTP.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.knn.backend import Mask, Rows

DEEPEST = 14
"""The last level of tiles; level z has 2**z tiles each way."""

GRID = 128
"""Cells of a tile each way, where it has counts."""

MOST_POINTS = 1000
"""Of a tile that has points: a tile with more has counts, except at the last level."""

_BITS = 21
_KEPT = 256


class MapPoints:
    """n points in the square from -1 to 1. rows: of their pictures in the library, int64 (n,)."""

    def __init__(self, places: NDArray[np.float32], clusters: NDArray[np.int32], rows: Rows) -> None:
        """places: float32 (n, 2), x and y. clusters: int32 (n,), -1 for none."""
        cells = np.clip((places.astype(np.float64) + 1) / 2 * (1 << _BITS), 0, (1 << _BITS) - 1).astype(np.uint64)
        keys = _spread_bits(cells[:, 0]) | (_spread_bits(cells[:, 1]) << np.uint64(1))
        order = np.argsort(keys, kind="stable")
        self.rows: Rows = rows[order]
        self.places = places[order]
        self.clusters = clusters[order]
        self._keys, self._cells = keys[order], cells[order]
        self._whole = lru_cache(_KEPT)(self._tile)

    def __len__(self) -> int:
        return len(self.rows)

    def tile(self, z: int, x: int, y: int, admitted: Mask | None = None) -> dict[str, Any]:
        """The tile in column x and row y of level z: its number of pictures and either points, [x, y, cluster, row], or
        cells with pictures, [number of the cell, pictures, cluster of one of them]. admitted: bool, by row of the
        library, the pictures that count; None for all."""
        return self._whole(z, x, y) if admitted is None else self._tile(z, x, y, admitted)

    def _tile(self, z: int, x: int, y: int, admitted: Mask | None = None) -> dict[str, Any]:
        width = np.uint64(2 * (_BITS - z))
        begin, end = self._run(z, x, y, width)
        found = np.arange(begin, end)
        if admitted is not None:
            found = found[admitted[self.rows[begin:end]]]
        if len(found) <= MOST_POINTS or z == DEEPEST:
            places = self.places[found].astype(np.float64).round(6).tolist()
            held = zip(places, self.clusters[found].tolist(), self.rows[found].tolist(), strict=True)
            return {"pictures": len(found), "points": [[*place, cluster, row] for place, cluster, row in held]}
        shift = np.uint64(_BITS - z - GRID.bit_length() + 1)
        across, down = ((self._cells[found] >> shift) & np.uint64(GRID - 1)).T.astype(np.int64)
        cells, firsts, counts = np.unique(down * GRID + across, return_index=True, return_counts=True)
        clusters = self.clusters[found[firsts]]
        return {"pictures": len(found), "cells": np.stack([cells, counts, clusters], axis=1).tolist()}

    def _run(self, z: int, x: int, y: int, width: np.uint64) -> tuple[int, int]:
        first = (_spread_bits(np.array([x], np.uint64)) | (_spread_bits(np.array([y], np.uint64)) << np.uint64(1)))[0]
        ends = np.array([first << width, ((first + np.uint64(1)) << width) - np.uint64(1)])
        return int(np.searchsorted(self._keys, ends[0])), int(np.searchsorted(self._keys, ends[1], side="right"))

    def inside(self, outline: NDArray[np.float64]) -> Mask:
        """Whether points lie in an outline, a polygon with the corners (m, 2), by the even-odd rule: bool (n,)."""
        low, high = outline.min(axis=0), outline.max(axis=0)
        near = np.flatnonzero(((self.places >= low) & (self.places <= high)).all(axis=1))
        x, y = self.places[near].astype(np.float64).T
        odd = np.zeros(len(near), np.bool_)
        for (x0, y0), (x1, y1) in zip(outline, np.roll(outline, 1, axis=0), strict=True):
            if y0 != y1:
                odd ^= ((y0 > y) != (y1 > y)) & (x < (x1 - x0) * (y - y0) / (y1 - y0) + x0)
        found = np.zeros(len(self), np.bool_)
        found[near[odd]] = True
        return found


def _spread_bits(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The bits of whole numbers below 2**21, each followed by a 0."""
    for shift, mask in (
        (16, 0x0000FFFF0000FFFF),
        (8, 0x00FF00FF00FF00FF),
        (4, 0x0F0F0F0F0F0F0F0F),
        (2, 0x3333333333333333),
    ):
        values = (values | (values << np.uint64(shift))) & np.uint64(mask)
    return (values | (values << np.uint64(1))) & np.uint64(0x5555555555555555)
