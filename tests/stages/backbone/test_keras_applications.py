"""Networks of keras.applications as backbones: Keras's own preparation of pixels, and its own vectors."""

import inspect
import sys
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from unittest import mock

import keras
import numpy as np
import pytest
from numpy.typing import NDArray

from stages.backbone.backbone_spec import MODEL_FILE
from stages.backbone.backbones import describe, load_backbone, save_backbone
from stages.backbone.catalogue import CATALOGUE, CatalogueEntry
from stages.backbone.keras_applications import PREPARATIONS, application
from stages.backbone.precision import in_precision
from stages.datum.contract import StageError

NETWORKS = [entry for entry in CATALOGUE.values() if entry.network]
QUICK = ("mobilenet",)


def pictures(size: int) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (2, size, size, 3), np.uint8)


def prepared_by_keras(entry: CatalogueEntry, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The pixels as the network's own `preprocess_input` returns them."""
    module = sys.modules[getattr(keras.applications, entry.network).__module__]
    prepared: NDArray[np.float32] = module.preprocess_input(pixels.astype(np.float32))
    return prepared


def test_every_network_of_keras_has_a_name() -> None:
    functions = {name for name, _ in inspect.getmembers(keras.applications, inspect.isfunction)}
    assert {entry.network for entry in NETWORKS} == functions


def test_pixels_are_prepared_as_by_keras() -> None:
    pixels = keras.Input((8, 8, 3), dtype="uint8")
    ours = {
        name: keras.Model(pixels, prepare(pixels)).predict_on_batch(pictures(8))
        for name, prepare in PREPARATIONS.items()
    }
    for entry in NETWORKS:
        original = entry.name == "resnet50"  # that of the original experiment
        expected = pictures(8).astype(np.float32) if original else prepared_by_keras(entry, pictures(8))
        tolerance = 2e-5 if entry.pixels == "caffe" else 1e-6
        np.testing.assert_allclose(ours[entry.pixels], expected, rtol=0, atol=tolerance, err_msg=entry.name)


@pytest.mark.parametrize(
    "name", [each.name if each.name in QUICK else pytest.param(each.name, marks=pytest.mark.soak) for each in NETWORKS]
)
def test_a_network_gives_the_vectors_of_keras(name: str, tmp_path: Path) -> None:
    entry = CATALOGUE[name]
    keras.utils.set_random_seed(0)
    network = getattr(keras.applications, entry.network)
    theirs = network(include_top=False, weights=None, pooling=entry.pooling, input_shape=(96, 96, 3))
    theirs.save_weights(tmp_path / "random.weights.h5")
    model, weights = application(entry, 96, tmp_path / "random.weights.h5")
    spec = save_backbone(model, describe(model, name, entry.pooling, weights), tmp_path)
    assert (spec.dimension, spec.weights.origin) == (entry.dimension, "random.weights.h5")
    assert abs(4 * theirs.count_params() / 1e6 - entry.megabytes) < 1
    pixels = pictures(96) if name == "resnet50" else prepared_by_keras(entry, pictures(96))
    expected = np.asarray(theirs(pixels, training=False))
    ours = load_backbone(tmp_path / MODEL_FILE, spec)
    if entry.pooling == "avg":  # random weights give vectors that are too short to be scaled to length 1
        ours = keras.Model(ours.input, ours.get_layer("vector").input)
    found = np.asarray(ours(pictures(96), training=False))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())
    in_precision(model, "mixed_float16")


def of_server(network: str, file: Path) -> AbstractContextManager[object]:
    """Lets keras.applications find this file where it would download one."""
    module = sys.modules[getattr(keras.applications, network).__module__]
    return mock.patch.object(module.file_utils, "get_file", lambda *_, **__: str(file))


@pytest.mark.only_in_all
def test_downloaded_weights_make_the_same_backbone_as_their_file(tmp_path: Path) -> None:
    file = tmp_path / "random.weights.h5"
    keras.applications.MobileNet(include_top=False, weights=None, input_shape=(32, 32, 3)).save_weights(file)
    with of_server("MobileNet", file):
        downloaded, weights = application(CATALOGUE["mobilenet"], 32, None)
    assert weights == replace(application(CATALOGUE["mobilenet"], 32, file)[1], origin=weights.origin)
    assert weights.origin == "keras.applications: weights=imagenet"
    assert np.isfinite(np.asarray(downloaded(pictures(32), training=False))).all()


@pytest.mark.only_in_all
def test_the_weights_of_efficientnet_b0_are_scaled_as_by_keras(tmp_path: Path) -> None:
    """Keras corrects the deviations in its own files with a layer that it adds for weights='imagenet' alone."""
    file = tmp_path / "imagenet.weights.h5"
    network = keras.applications.EfficientNetB0
    keras.utils.set_random_seed(0)
    like_keras = network(include_top=False, weights=None, input_shape=(32, 32, 3))
    (scaling,) = (layer for layer in like_keras.layers if isinstance(layer, keras.layers.Normalization))
    scaling.set_weights([np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225]), np.array(1)])
    like_keras.save_weights(file)
    with of_server("EfficientNetB0", file):
        theirs = network(include_top=False, weights="imagenet", pooling="avg", input_shape=(32, 32, 3))
    ours, _ = application(CATALOGUE["efficientnetb0"], 32, file)
    expected = np.asarray(theirs(pictures(32).astype(np.float32), training=False))
    expected = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(np.asarray(ours(pictures(32), training=False)), expected, rtol=1e-4, atol=1e-6)


def test_pictures_that_are_too_small_are_refused() -> None:
    with pytest.raises(StageError, match=r"^inceptionv3 cannot take pictures of 64 px: .* at least 75x75"):
        application(CATALOGUE["inceptionv3"], 64, None)
