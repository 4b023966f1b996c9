"""The map of the library as answers: its clusters with what marks them, tiles, and the pictures in a part of it.

A value marks a cluster if many of its pictures have it, and far more of them than of the library's. Knows no HTTP.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stages.files.tables.parquet import true_text
from stages.filters import facets
from stages.filters.attribute_table import AttributeTable
from stages.knn.backend import Mask, Rows
from stages.serving.answer import search_answer
from stages.serving.follow.map_listings import LibraryMap
from stages.serving.follow.snapshots import Snapshot

MOST_IDS, MOST_TILES = 10_000, 200
"""Pictures of a part of the map that are named, and that are shown."""

_MARKS = 3
_LEAST_SHARE, _LEAST_LIFT, _LEAST_PICTURES = 0.3, 1.5, 3
_MOST_VALUES = 1000


def overview(found: LibraryMap, snapshot: Snapshot) -> dict[str, Any]:
    """The clusters, the largest first, with the middle, the number of pictures and the marks of each."""
    if not found.marks:
        found.marks["clusters"] = _clusters(found, snapshot)
    names = ("seed", "sample", "library", "versions", "index")
    return {
        "pictures": len(found.points),
        "library": len(snapshot.library),
        "stale": found.stale,
        "clusters": found.marks["clusters"],
        "layout": {name: found.layout[name] for name in names if name in found.layout},
        "commits": {**snapshot.commits.as_data(), "map": found.commit},
    }


def tile(found: LibraryMap, admitted: Mask | None, z: int, x: int, y: int) -> dict[str, Any]:
    """A tile, see MapPoints.tile; a point has the picture's id in place of its row."""
    made = found.points.tile(z, x, y, admitted)
    if "points" not in made:
        return made
    return {**made, "points": [[*point, found.library.id(row)] for *point, row in made["points"]]}


def chosen(found: LibraryMap, admitted: Mask | None, outline: NDArray[np.float64] | None, cluster: int | None) -> Rows:
    """The points in an outline and a cluster, each None for all, whose pictures are admitted: places in `points`, in
    the order of ids, int64."""
    points = found.points
    wanted = np.ones(len(points), np.bool_) if outline is None else points.inside(outline)
    if cluster is not None:
        wanted &= points.clusters == cluster
    if admitted is not None:
        wanted &= admitted[points.rows]
    places = np.flatnonzero(wanted)
    return places[np.argsort(points.rows[places])]


def pictures(found: LibraryMap, snapshot: Snapshot, places: Rows) -> dict[str, Any]:
    """The pictures of some points."""
    rows = found.points.rows[places]
    shown = rows[:MOST_TILES].tolist()
    return {
        "total": len(rows),
        "ids": [snapshot.library.id(row) for row in rows[:MOST_IDS].tolist()],
        "pictures": [search_answer.listed_picture(snapshot, row, _path(snapshot, row)) for row in shown],
        "commits": {**snapshot.commits.as_data(), "map": found.commit},
    }


def table(found: LibraryMap, snapshot: Snapshot, places: Rows) -> pa.Table:
    """The id, the first path, the place and the cluster of some points."""
    points, rows = found.points, found.points.rows[places].tolist()
    x, y = (points.places[places, at].astype(np.float64).round(6) for at in (0, 1))
    names = [snapshot.library.id(row) for row in rows], [_path(snapshot, row) for row in rows]
    held = dict(zip(("id", "path", "x", "y", "cluster"), (*names, x, y, points.clusters[places]), strict=True))
    return pa.table({**held, "path": pa.array(map(_shown, names[1]))})


def _shown(path: str) -> str:
    return path.encode("utf-8", "replace").decode()


def _path(snapshot: Snapshot, row: int) -> str:
    return snapshot.library.sources(row)[0].path


def _clusters(found: LibraryMap, snapshot: Snapshot) -> list[dict[str, Any]]:
    points = found.points
    of_row = np.full(len(snapshot.library), -1, np.int64)
    of_row[points.rows] = points.clusters
    count = int(points.clusters.max(initial=-1)) + 1
    marks = _marks(snapshot.library.attributes.table, of_row, count)
    made = []
    for number in range(count):
        places = np.flatnonzero(points.clusters == number)
        if len(places):
            x, y = np.median(points.places[places].astype(np.float64), axis=0)
            away = np.hypot(*(points.places[places] - [x, y]).T)
            id = snapshot.library.id(int(points.rows[places[np.argmin(away)]]))
            radius = round(float(np.quantile(away, 0.9)), 6)
            at = {"x": round(float(x), 6), "y": round(float(y), 6), "radius": radius, "id": id}
            made.append({"cluster": number, "pictures": len(places), **at, "marks": marks[number]})
    return sorted(made, key=lambda each: (-each["pictures"], each["cluster"]))


def _marks(table: AttributeTable, of_row: Rows, count: int) -> Sequence[list[dict[str, Any]]]:
    """What marks each cluster, by the first file of each picture. of_row: the cluster of each picture, -1 for none."""
    found: list[list[tuple[float, dict[str, Any]]]] = [[] for _ in range(count)]
    firsts = np.flatnonzero(np.diff(table.rows, prepend=-1))
    sizes = np.bincount(of_row[of_row >= 0], minlength=count)
    for name in facets.shown_columns(table):
        if table.columns[name].kind not in ("text", "boolean"):
            continue
        values = pc.take(table.column(name), pa.array(firsts))
        coded = values if isinstance(values, pa.DictionaryArray) else pc.dictionary_encode(values)
        coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
        width = len(coded.dictionary)
        if not 0 < width <= _MOST_VALUES:
            continue
        valid, codes = np.asarray(pc.is_valid(coded)), np.asarray(coded.indices.fill_null(0))
        known = valid & (of_row >= 0)
        counts = np.bincount(of_row[known] * width + codes[known], minlength=count * width).reshape(count, width)
        whole = np.bincount(codes[valid], minlength=width) / len(of_row)
        shares = counts / np.maximum(sizes, 1)[:, None]
        marked = (shares >= _LEAST_SHARE) & (shares >= _LEAST_LIFT * whole) & (counts >= _LEAST_PICTURES)
        for cluster, value in np.argwhere(marked).tolist():
            share, lift = float(shares[cluster, value]), float(shares[cluster, value] / whole[value])
            shown = coded.dictionary[value].as_py()
            said = {"column": name, "value": true_text(shown) if isinstance(shown, str) else shown}
            mark = {**said, "share": round(share, 4), "lift": round(lift, 2)}
            found[cluster].append((-share * math.log(lift), mark))
    return [[mark for _, mark in sorted(each, key=lambda one: (one[0], str(one[1])))[:_MARKS]] for each in found]
