"""Points of the map: tiles of all levels hold each point once, and outlines hold what lies in them."""

from __future__ import annotations

import numpy as np
import pytest

from stages.serving.search import map_points
from stages.serving.search.map_points import DEEPEST, GRID, MOST_POINTS, MapPoints

COUNT = 6000


@pytest.fixture(scope="module")
def points() -> MapPoints:
    """Two dense spots, the corners, and a few that are spread, in an order of their own."""
    chance = np.random.default_rng(4)
    corners = np.array([[-1, -1], [1, 1], [-1, 1], [1, -1], [0, 0]])
    places = np.concatenate(
        [0.05 * chance.normal(size=(COUNT - 505, 2)) + 0.4, chance.uniform(-1, 1, (500, 2)), corners]
    )
    return MapPoints(
        places.astype(np.float32), (np.arange(COUNT) % 7 - 1).astype(np.int32), np.arange(COUNT)[::-1].copy()
    )


def rows(points: MapPoints, z: int, x: int, y: int) -> list[int]:
    """Those in a tile, from tiles further down where it has counts; it must have as many as they."""
    tile = points.tile(z, x, y)
    if "points" in tile:
        assert tile["pictures"] == len(tile["points"]) <= (COUNT if z == DEEPEST else MOST_POINTS)
        return [row for *_, row in tile["points"]]
    found = [row for b in (0, 1) for a in (0, 1) for row in rows(points, z + 1, 2 * x + a, 2 * y + b)]
    assert tile["pictures"] == len(found) == sum(count for _, count, _ in tile["cells"])
    assert all(0 <= cell < GRID * GRID for cell, _, _ in tile["cells"])
    return found


def test_every_level_has_each_point_once(points: MapPoints) -> None:
    for level in (0, 1, 3):
        found = [row for y in range(2**level) for x in range(2**level) for row in rows(points, level, x, y)]
        assert sorted(found) == list(range(COUNT))


def test_points_lie_in_their_tiles_and_cells(points: MapPoints) -> None:
    tile = points.tile(2, 0, 3)
    assert tile["points"] and all(x <= -0.5 and y >= 0.5 for x, y, *_ in tile["points"])
    counts = np.zeros((GRID, GRID), int)
    column, row = np.minimum((points.places.astype(float) + 1) / 2 * GRID, GRID - 1).astype(int).T
    np.add.at(counts, (row, column), 1)
    assert {cell: count for cell, count, _ in points.tile(0, 0, 0)["cells"]} == {
        at: count for at, count in enumerate(counts.ravel().tolist()) if count
    }


def test_a_filter_leaves_its_pictures(points: MapPoints) -> None:
    admitted = np.zeros(COUNT, np.bool_)
    admitted[::50] = True
    tile = points.tile(0, 0, 0, admitted)
    assert sorted(row for *_, row in tile["points"]) == list(range(0, COUNT, 50))
    assert points.tile(0, 0, 0, ~admitted)["pictures"] == COUNT - len(tile["points"])


def test_equal_places_end_at_the_last_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_points, "MOST_POINTS", 3)
    same = MapPoints(np.full((9, 2), 0.25, np.float32), np.zeros(9, np.int32), np.arange(9))
    column = int((0.25 + 1) / 2 * 2**DEEPEST)
    assert "cells" in same.tile(DEEPEST - 1, column // 2, column // 2)
    assert len(same.tile(DEEPEST, column, column)["points"]) == 9


def test_outlines(points: MapPoints) -> None:
    square = np.array([[0.3, 0.3], [0.6, 0.3], [0.6, 0.6], [0.3, 0.6]])
    x, y = points.places.astype(float).T
    assert np.array_equal(points.inside(square), (x >= 0.3) & (x < 0.6) & (y > 0.3) & (y <= 0.6))
    assert np.array_equal(points.inside(square), points.inside(square[::-1]))
    # Without the corners, which lie on the edges and have the first rows.
    triangle = np.array([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    assert (points.inside(triangle) == (x + y < 0))[np.argsort(points.rows)][5:].all()
    bow = np.array([[-0.9, -0.9], [0.9, 0.9], [0.9, -0.9], [-0.9, 0.9]])  # crosses itself: two triangles
    expected = (np.abs(y) < np.abs(x)) & (np.abs(x) < 0.9)
    assert (points.inside(bow) == expected)[np.argsort(points.rows)][5:].all()


def test_no_points() -> None:
    none = MapPoints(np.empty((0, 2), np.float32), np.empty(0, np.int32), np.empty(0, np.int64))
    assert none.tile(0, 0, 0) == {"pictures": 0, "points": []} and not none.inside(np.eye(3, 2)).any()
