"""Scales of distances: what they are measured from, their words, and files that hold no scale."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from stages.knn.backend import Vectors
from stages.knn.search_settings import METRICS
from stages.knn.vector_set import VectorSet
from stages.quality.distance_limits import SIMILAR, VERY_SIMILAR, WEAK
from stages.quality.distance_scale import DistanceScale, measured, read

MODEL = "a" * 64
SCENES, EACH, DIMENSION = 12, 6, 32
LABELS = [str(scene) for scene in range(SCENES) for _ in range(EACH)]


def vectors(unit: bool, seed: int = 0) -> tuple[Vectors, Vectors]:
    """Vectors of scenes, whose parts lie around one place, and of copies, which lie still closer to some."""
    lot = np.random.default_rng(seed)
    parts = np.repeat(lot.normal(size=(SCENES, DIMENSION)), EACH, axis=0) + 0.4 * lot.normal(
        size=(SCENES * EACH, DIMENSION)
    )
    copies = parts[::3] + 0.1 * lot.normal(size=(SCENES * EACH // 3, DIMENSION))
    if unit:
        parts, copies = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (parts, copies))
    return parts.astype(np.float32), copies.astype(np.float32)


def scale(unit: bool = True) -> DistanceScale:
    parts, copies = vectors(unit)
    found = read(measured(MODEL, parts, LABELS, copies, range(0, len(parts), 3)), MODEL)
    assert found is not None
    return found


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("unit", [False, True])
def test_copies_are_nearest_then_parts_of_a_scene_then_others(metric: str, unit: bool) -> None:
    (parts, _), found = vectors(unit), scale(unit)
    limits = found.limits(metric)
    assert 0 < limits.changed < limits.very_similar < limits.similar
    assert found.unit is unit
    first, second = np.triu_indices(len(parts), 1)
    points = VectorSet(parts, metric)
    words = [limits.likeness(each) for each in points.distances(first, points, second).tolist()]
    scenes = np.asarray(LABELS)
    alike = scenes[first] == scenes[second]
    of = {True: np.asarray(words)[alike], False: np.asarray(words)[~alike]}
    assert (of[False] == WEAK).mean() >= 0.999
    assert 0.2 <= (of[True] == VERY_SIMILAR).mean() <= 0.3
    assert 0.2 <= (of[True] == SIMILAR).mean() <= 0.3


@given(st.integers(0, 2**32), st.floats(0.5, 2), st.sampled_from(METRICS))
def test_words_never_grow_better_with_the_distance(seed: int, stretch: float, metric: str) -> None:
    parts, copies = vectors(False, seed)
    found = read(measured(MODEL, parts * np.float32(stretch), LABELS, copies, range(0, len(parts), 3)), MODEL)
    assert found is not None
    words = [found.limits(metric).likeness(each) for each in np.linspace(0, 20, 200)]
    assert words == sorted(words, key=(VERY_SIMILAR, SIMILAR, WEAK).index)


def test_of_unit_vectors_both_metrics_say_the_same() -> None:
    found = scale()
    for distance in np.linspace(0, 2, 500):
        if min(abs(distance - limit) for limit in (found.euclidean.very_similar, found.euclidean.similar)) > 1e-3:
            assert found.euclidean.likeness(distance) == found.cosine.likeness(distance**2 / 2)


def test_the_scale_of_another_model_is_none() -> None:
    parts, copies = vectors(True)
    assert read(measured(MODEL, parts, LABELS, copies, range(0, len(parts), 3)), "b" * 64) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"{}", b"[" * 100_000, json.dumps({"model": MODEL, "unit": True, "euclidean": 1}).encode()],
)
def test_anything_else_is_no_scale(content: bytes) -> None:
    assert read(content, MODEL) is None
