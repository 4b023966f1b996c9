"""Mixed precision: the layers that compute in it, and the measured drift of the neighbours."""

from pathlib import Path
from typing import get_args

import keras
import numpy as np
import pytest

from pipelines.client.backbones import Precision
from stages.backbone.backbone_spec import WeightsOrigin
from stages.backbone.backbones import describe, save_backbone
from stages.backbone.precision import PRECISIONS, drift, in_precision
from stages.datum.contract import StageError
from stages.zoo import make_backbone


def test_the_command_knows_the_same_precisions() -> None:
    assert get_args(Precision) == PRECISIONS


@pytest.fixture(scope="module")
def model() -> keras.Model:
    """A small network with its surroundings: scaling before it, pooling and normalising after it."""
    pixels = keras.Input((32, 32, 3), dtype="uint8", name="pixels")
    x = keras.layers.Rescaling(1 / 255, name="scaled")(pixels)
    x = keras.layers.Conv2D(8, 3, 2, name="conv", kernel_initializer=keras.initializers.GlorotUniform(seed=1))(x)
    x = keras.layers.ReLU(6.0, name="relu")(keras.layers.BatchNormalization(name="norm")(x))
    x = keras.layers.GlobalAveragePooling2D(name="pooled")(x)
    return keras.Model(pixels, keras.layers.UnitNormalization(name="vector")(x), name="small")


@pytest.mark.parametrize(("precision", "computed"), [("mixed_float16", "float16"), ("mixed_bfloat16", "bfloat16")])
def test_only_the_network_itself_computes_in_it(model: keras.Model, precision: str, computed: str) -> None:
    made = in_precision(model, precision)
    types = {layer.name: layer.compute_dtype for layer in made.layers}
    assert {types[name] for name in ("conv", "norm", "relu")} == {computed}
    assert {types[name] for name in ("scaled", "pooled", "vector")} == {"float32"}
    assert {weight.dtype for weight in made.weights} == {"float32"}
    for mine, theirs in zip(made.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    noise = np.random.default_rng(0).integers(0, 256, (8, 32, 32, 3), np.uint8)
    exact, mixed = (each.predict_on_batch(noise) for each in (model, made))
    assert mixed.dtype == np.float32
    assert 0 < np.abs(exact - mixed).max() < 0.01


def test_it_is_another_model(model: keras.Model, tmp_path: Path) -> None:
    specs = []
    for precision in PRECISIONS:
        made = in_precision(model, precision)
        (tmp_path / precision).mkdir()
        spec = describe(made, "small", "avg", WeightsOrigin("a test", ""))
        specs.append(save_backbone(made, spec, tmp_path / precision))
    assert [each.precision for each in specs] == ["float32", "float16+float32", "bfloat16+float32"]
    assert len({each.sha256 for each in specs}) == 3
    (tmp_path / "itself").mkdir()
    assert save_backbone(model, specs[0], tmp_path / "itself").sha256 == specs[0].sha256


def test_the_drift_counts_kept_neighbours_and_moved_vectors() -> None:
    before = np.array([[0, 0], [1, 0], [3, 0], [7, 0], [15, 0]], np.float32)
    assert drift(before, before, k=1) == drift(before, before.copy(), k=1)
    assert (drift(before, before, k=1).kept, drift(before, before, k=1).furthest) == (1, 0)
    after = before.copy()
    after[1] = [2.5, 0]  # its nearest was the first picture and is now the third
    found = drift(before, after, k=1)
    assert (found.kept, found.furthest) == pytest.approx((0.8, 1.5))
    assert found.pictures == 5
    assert str(found).startswith(
        "80.0% of the 1 nearest of 5 reference pictures are the same as in float32; vectors differ"
    )


def test_the_order_among_the_nearest_does_not_count() -> None:
    before = np.array([[0], [1], [-1.1], [50]], np.float32)
    after = np.array([[0], [1.1], [-1], [50]], np.float32)
    assert drift(before, after, k=2).kept == 1


def test_a_file_has_its_own_precision(model: keras.Model, tmp_path: Path) -> None:
    model.save(tmp_path / "mine.keras")
    with pytest.raises(StageError, match="a .keras file has its own precision: save"):
        make_backbone(str(tmp_path / "mine.keras"), 32, None, tmp_path, "mixed_float16")
