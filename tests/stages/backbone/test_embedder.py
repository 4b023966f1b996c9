"""A picture's vector depends on nothing but the picture, bit for bit."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from stages.backbone import devices
from stages.backbone.backbone_spec import MODEL_FILE, SPEC_FILE, WeightsOrigin, parse_spec
from stages.backbone.backbones import describe, forward, load_backbone
from stages.backbone.embedder import Embedder
from stages.datum.contract import StageError
from tests.example_counts import examples
from tests.stages.models import SmallModel

NUMBER_OF_TILES = 37


@pytest.fixture(scope="module")
def embedder(lite0: Path) -> Embedder:
    devices.prepare({})
    spec = parse_spec((lite0 / SPEC_FILE).read_bytes())
    return Embedder(forward(load_backbone(lite0 / MODEL_FILE, spec)), spec)


@pytest.fixture(scope="module")
def vectors(embedder: Embedder, tiles: NDArray[np.uint8]) -> NDArray[np.float32]:
    assert len(tiles) == NUMBER_OF_TILES
    return embedder(tiles)


def test_vectors_are_float32_of_length_one(vectors: NDArray[np.float32]) -> None:
    assert vectors.dtype == np.float32
    assert vectors.shape == (NUMBER_OF_TILES, 1280)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    assert len(np.unique(vectors, axis=0)) == NUMBER_OF_TILES


@settings(max_examples=examples(6))
@given(st.lists(st.integers(0, NUMBER_OF_TILES - 1), max_size=70))
def test_a_vector_does_not_depend_on_its_batch(
    embedder: Embedder, tiles: NDArray[np.uint8], vectors: NDArray[np.float32], chosen: list[int]
) -> None:
    np.testing.assert_array_equal(embedder(tiles[chosen]), vectors[chosen])


def test_a_vector_does_not_depend_on_its_position(
    embedder: Embedder, tiles: NDArray[np.uint8], vectors: NDArray[np.float32]
) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (len(tiles), 96, 96, 3), np.uint8)
    for place in (0, 7, 16, 31):
        batch = noise[: embedder.spec.batch].copy()
        batch[place] = tiles[7]
        np.testing.assert_array_equal(embedder(batch)[place], vectors[7])


def test_concurrent_passes_change_no_vector_and_no_order(
    embedder: Embedder, tiles: NDArray[np.uint8], vectors: NDArray[np.float32]
) -> None:
    taken: list[int] = []
    given, at_once = 0, 2

    def batches() -> Iterator[NDArray[np.uint8]]:
        for begin in range(0, NUMBER_OF_TILES, 4):
            taken.append(begin)
            yield tiles[begin : begin + 4]

    several = Embedder(embedder._forward, embedder.spec, at_once)
    for some in several.stream(batches()):
        np.testing.assert_array_equal(some, vectors[given : given + 4])
        given += len(some)
        assert len(taken) * 4 - given <= 4 * at_once, "pictures were taken long before they could be computed"
    assert given == NUMBER_OF_TILES


def test_no_pictures_give_no_vectors(embedder: Embedder) -> None:
    assert embedder(np.empty((0, 96, 96, 3), np.uint8)).shape == (0, 1280)


def test_pictures_of_another_size_or_type_are_refused(embedder: Embedder) -> None:
    with pytest.raises(StageError, match=r"takes uint8 \(96, 96, 3\)"):
        embedder(np.empty((1, 64, 64, 3), np.uint8))
    with pytest.raises(StageError, match="float32"):
        embedder(np.empty((1, 96, 96, 3), np.float32))


def test_vectors_that_are_not_finite_are_refused(small_model: SmallModel, tiles: NDArray[np.uint8]) -> None:
    model = small_model(96)
    model.get_layer("one").set_weights(
        [np.full_like(values, np.nan) for values in model.get_layer("one").get_weights()]
    )
    spec = describe(model, "broken", "own", WeightsOrigin("here", ""))
    with pytest.raises(StageError, match="broken gives values that are not finite"):
        Embedder(forward(model), spec)(tiles)
