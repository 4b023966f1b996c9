"""The map stage: the places of a segment's pictures on the map, from their vectors and the layout alone.

Inputs: `index`, the directory of a segment; `layouts`, the whole repo. Lazy or not. Writes /<segment>.parquet
(stages.files.tables.map_table). With a layout of another model, metric or kind of vectors than the segment it says so
there and in the log, and places nothing: a later layout brings the map back, and no job has failed.

A place is the mean of those of the layout's pictures that are nearest. It follows from the picture's vector and the
layout alone, so another picture moves none. All sums are exact, or have a fixed order: equal input gives equal bytes on
every machine.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.map"))

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stages.datum.contract import Datum, StageError
from stages.datum.input_cache import InputCache
from stages.datum.text_format import counted
from stages.files import segment_files
from stages.files.layout_files import FIT, Layout, read_layout
from stages.files.segment_files import SegmentFacts
from stages.files.tables.map_table import SUFFIX, MapTable
from stages.knn.backend import Vectors
from stages.knn.vector_set import VectorSet

VERSION = 1
"""Version of the stage's output, equal to LOOKALIKE_STAGE in its specifications. See CONTRIBUTING.md."""


NEIGHBOURS = 4
"""The pictures of a layout that give a place, of which the last has no weight: by it the others are weighed."""

_BLOCK = 32 << 20
"""Bytes of distances that are held at once."""


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Has no parameters. Keeps the layout, which all datums of a commit share."""
    layouts = InputCache(lambda each: read_layout(each.path))

    def process(datum: Datum) -> None:
        datum.require("map needs a segment of the index and the repo layouts", "index", "layouts")
        index, layout = datum.inputs["index"], layouts.get(datum.inputs["layouts"])
        if layout is None:
            raise StageError(f"the repo layouts holds no layout: {FIT}")
        name, facts, images = (
            Path(index.repo_path).name,
            segment_files.read_facts(index),
            segment_files.read_table(index),
        )
        stale = _stale(layout, facts)
        if stale:
            table = MapTable(ids=[], x=[], y=[], clusters=[], origin=facts.origin, stale=stale)
        else:
            vectors = segment_files.read_points(index, images.vectors, facts.origin.dimension)
            positions, clusters = place(layout, VectorSet(vectors, layout.metric, images.ids).prepared)
            x, y = np.ascontiguousarray(positions.T)
            table = MapTable(ids=images.ids, x=x, y=y, clusters=clusters, origin=facts.origin)
        table.write(datum.out / f"{name}{SUFFIX}")
        print(f"map: {name}: {stale or counted(len(table), 'picture', 'pictures')}")

    return process


def _stale(layout: Layout, facts: SegmentFacts) -> str:
    """Why the layout is not of the segment's vectors, "" if it is."""
    if reason := layout.origin.mismatch(facts.origin, "the layout", "the index"):
        return f"{reason} To map the library again, {FIT}"
    if layout.metric != facts.metric:
        return f"the layout is of {layout.metric} distances, the index of {facts.metric} ones. To map it again, {FIT}"
    return ""


def place(layout: Layout, prepared: Vectors) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """The places of pictures, float32 (n, 2), and the clusters of those nearest to them in the layout, int32 (n,).
    prepared: their vectors as the layout's metric has them, float32 (n, d), finite.

    A picture with the vector of one in the layout has its place.
    """
    points = layout.points.astype(np.float64)
    halves = (points * points).sum(axis=1)
    positions = np.empty((len(prepared), 2), np.float32)
    clusters = np.empty(len(prepared), np.int32)
    step = max(1, _BLOCK // (8 * len(layout)))
    for start in range(0, len(prepared), step):
        some = layout.project(prepared[start : start + step])
        squares = (some * some).sum(axis=1)[:, None] + halves - 2 * (some @ points.T)
        nearest, found = _nearest(squares)
        positions[start : start + step] = _mean(layout.positions[nearest].astype(np.float64), found)
        clusters[start : start + step] = layout.clusters[nearest[:, 0]]
    return positions, clusters


def _nearest(squares: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The columns of the least whole numbers of each row, and these; equal ones in the order of columns: (n, k)."""
    count = squares.shape[1]
    keys = squares.astype(np.int64) * count + np.arange(count)  # below 2**44 × 2**17
    k = min(NEIGHBOURS, count)
    first = np.sort(np.partition(keys, k - 1, axis=1)[:, :k], axis=1)
    return first % count, (first // count).astype(np.float64)


def _mean(places: NDArray[np.float64], squares: NDArray[np.float64]) -> NDArray[np.float64]:
    """The means of places, (n, k, 2), weighed by how much nearer each is than the last, (n, 2)."""
    limit = np.maximum(squares[:, -1:], 1.0)
    weights = ((limit - squares) / np.maximum(squares, 1.0)) ** 2
    weights[squares[:, 0] == 0] = 0
    weights[:, 0] = np.where((squares[:, 0] == 0) | (squares[:, 0] == limit[:, 0]), 1.0, weights[:, 0])
    total = np.zeros(len(places))
    sums = np.zeros((len(places), 2))
    for column in range(places.shape[1]):  # one after the other: a sum of NumPy's has no fixed order
        total += weights[:, column]
        sums += weights[:, column, None] * places[:, column]
    return sums / total[:, None]
