"""Backbones as graphs: the vectors of Keras bit by bit, or Keras itself."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from numpy.typing import NDArray

from stages.backbone import devices, embedder_factory
from stages.backbone.backbone_file import ModelContents, read
from stages.backbone.backbone_spec import MODEL_FILE, SPEC_FILE, BackboneSpec, WeightsOrigin, parse_spec
from stages.backbone.backbones import describe, forward, load_backbone, save_backbone
from stages.backbone.catalogue import CATALOGUE, INSTALLED
from stages.backbone.embedder import Embedder
from stages.backbone.embedder_factory import KNOWN, agrees, fingerprint, known_architecture
from stages.backbone.forward_passes import ForwardPass
from stages.backbone.graphs import keras_parity, tensorflow_library
from stages.backbone.graphs.graph_network import GraphNetwork
from stages.backbone.graphs.graph_operations import GraphSession, OperationGraph
from stages.backbone.graphs.keras_layers import UnfamiliarLayerError
from stages.backbone.graphs.tensorflow_library import LibraryError
from stages.backbone.keras_applications import PREPARATIONS
from stages.backbone.precision import in_precision
from stages.datum.contract import StageError
from stages.zoo import make_backbone
from tests.stages.models import SmallModel

NETWORKS = ("mobilenetv2", "resnet50")
"""Those of keras.applications that are known."""

SIDE = 64

Layer = Callable[[Any], Any]


def randomised(model: keras.Model) -> keras.Model:
    """The model with weights that are all random, with those of normalisations too, and keep values in bounds."""
    lot = np.random.default_rng(0)
    weights = []
    for each in model.weights:
        spread = 1.4 / max(1, int(np.prod(each.shape[:-1]))) ** 0.5 if len(each.shape) > 1 else 0.1
        values = lot.normal(0, spread, each.shape)
        weights.append((1 + values if each.path.endswith(("gamma", "moving_variance")) else values).astype(np.float32))
    model.set_weights(weights)
    return model


def saved(model: keras.Model, directory: Path, name: str = "made") -> BackboneSpec:
    return save_backbone(model, describe(model, name, "own", WeightsOrigin("made by a test", "0" * 64)), directory)


def noise(spec: BackboneSpec, count: int = 0) -> NDArray[np.uint8]:
    shape = (count or spec.batch, spec.image_size, spec.image_size, 3)
    return np.random.default_rng(1).integers(0, 256, shape, np.uint8)


def compare(directory: Path, spec: BackboneSpec) -> ForwardPass:
    """The graph of a file gives the bytes that Keras gives; returns the pass of Keras."""
    network = GraphNetwork(read(directory / MODEL_FILE, spec), spec)
    by_keras = forward(load_backbone(directory / MODEL_FILE, spec))
    extremes = np.where(noise(spec) < 128, 0, 255).astype(np.uint8)
    for pictures in (noise(spec), np.zeros_like(extremes), extremes):
        found, expected = network(pictures), by_keras(pictures)
        assert found.dtype == expected.dtype == np.float32
        assert np.isfinite(found).all() and found.any()
        assert found.tobytes() == expected.tobytes()
    return by_keras


def small(layer: Layer, side: int = 24) -> keras.Model:
    """A model around one layer, which gets numbers of both signs in six channels."""
    pixels = keras.Input((side, side, 3), dtype="uint8", name="pixels")
    x = keras.layers.Rescaling([0.01, 0.02, 0.03], [-1.0, -2.0, -3.0], name="scaled")(pixels)
    x = layer(keras.layers.Conv2D(6, 3, name="before")(x))
    x = keras.layers.GlobalAveragePooling2D(name="pooled")(x) if len(x.shape) == 4 else x
    return randomised(keras.Model(pixels, x, name="small"))


def test_the_installed_backbone(lite0: Path, tiles: NDArray[np.uint8]) -> None:
    spec = parse_spec((lite0 / SPEC_FILE).read_bytes())
    by_keras = Embedder(compare(lite0, spec), spec)
    assert KNOWN[fingerprint(read(lite0 / MODEL_FILE, spec).config)] == "efficientnet-lite0"
    found = embedder_factory.embedder(lite0 / MODEL_FILE, spec, {})
    assert isinstance(found._forward, GraphNetwork) and found.device == devices.kind() == "cpu"
    expected = by_keras(tiles)
    np.testing.assert_array_equal(found(tiles), expected)
    for count in (1, 7, 8, 9, 24):  # by small passes, unless this processor computes other bits with them
        np.testing.assert_array_equal(found(tiles[:count]), expected[:count])


@pytest.mark.only_in_all
@pytest.mark.parametrize("name", INSTALLED[1:])
def test_its_larger_relatives(name: str, tmp_path: Path) -> None:
    spec, _ = make_backbone(name, 32, None, tmp_path)
    compare(tmp_path, spec)
    assert KNOWN[fingerprint(read(tmp_path / MODEL_FILE, spec).config)] == name


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.only_in_all
def test_networks_of_keras(name: str, tmp_path: Path) -> None:
    entry = CATALOGUE[name]
    pixels = keras.Input((SIDE, SIDE, 3), dtype="uint8", name="pixels")
    network = getattr(keras.applications, entry.network)
    prepared = PREPARATIONS[entry.pixels](pixels)
    base = network(include_top=False, weights=None, pooling=entry.pooling, input_tensor=prepared)
    vector = base.output
    if entry.pooling == "avg":
        vector = keras.layers.UnitNormalization(name="vector")(vector)
    spec = saved(randomised(keras.Model(pixels, vector, name=name)), tmp_path)
    compare(tmp_path, spec)
    assert KNOWN[fingerprint(read(tmp_path / MODEL_FILE, spec).config)] == name


def test_all_that_are_known_are_compared() -> None:
    assert sorted(KNOWN.values()) == sorted([*INSTALLED, *NETWORKS])


LAYERS: dict[str, Layer] = {
    "strides and dilation of one": keras.layers.Conv2D(5, (3, 2), (2, 1), padding="same", activation="relu"),
    "a dense layer": lambda x: keras.layers.Dense(5, activation="tanh")(keras.layers.Flatten()(x)),
    "one without a bias, after a dropout": lambda x: keras.layers.Dense(5, use_bias=False)(
        keras.layers.Dropout(0.5)(keras.layers.GlobalMaxPooling2D()(x))
    ),
    "the average of windows": keras.layers.AveragePooling2D(3, 2, padding="same"),
    "a sigmoid": keras.layers.Activation("sigmoid"),
    "a depthwise convolution": keras.layers.DepthwiseConv2D(3, 2, depth_multiplier=2, activation="relu6"),
    "a normalisation of the last axis": keras.layers.BatchNormalization(),
    "one of the third axis": keras.layers.BatchNormalization(axis=3, epsilon=0.01),
    "one without a scale": keras.layers.BatchNormalization(scale=False),
    "one without a centre": keras.layers.BatchNormalization(axis=3, center=False),
    "a bare rectifier": keras.layers.ReLU(),
    "one up to six": keras.layers.ReLU(6.0),
    "an activation": keras.layers.Activation("relu"),
    "the largest of windows": keras.layers.MaxPooling2D(3, 2, padding="same"),
    "the largest of all": keras.layers.GlobalMaxPooling2D(),
    "zeros around": keras.layers.ZeroPadding2D(((1, 2), (0, 3))),
    "a sum": lambda x: keras.layers.Add()([x, keras.layers.ReLU()(x), x]),
    "a residual block": lambda x: keras.layers.Add()(
        [x, keras.layers.BatchNormalization(axis=3)(keras.layers.Conv2D(6, 1)(x))]
    ),
    "a length of one": lambda x: keras.layers.UnitNormalization()(keras.layers.GlobalMaxPooling2D()(x)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str, tmp_path: Path) -> None:
    compare(tmp_path, saved(small(LAYERS[name]), tmp_path))


UNKNOWN: dict[str, Layer] = {
    "the activation gelu": keras.layers.Activation("gelu"),
    "a dense layer of each pixel": keras.layers.Dense(3),
    "a dilated convolution": keras.layers.Conv2D(5, 3, dilation_rate=2),
    "groups": keras.layers.Conv2D(6, 3, groups=3),
    "a leaking rectifier": keras.layers.ReLU(negative_slope=0.1),
    "another highest value": keras.layers.ReLU(4.0),
    "a layer that is used twice": lambda x: (lambda layer: layer(layer(x)))(keras.layers.ReLU()),
    "a model in a model": lambda x: keras.Sequential([keras.layers.ReLU()])(x),
    "half precision": keras.layers.Conv2D(4, 3, dtype="float16"),
    "double precision": keras.layers.Conv2D(4, 3, dtype="float64"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_other_layers_are_unfamiliar(name: str, tmp_path: Path) -> None:
    spec = saved(small(UNKNOWN[name]), tmp_path)
    with pytest.raises(UnfamiliarLayerError):
        GraphNetwork(read(tmp_path / MODEL_FILE, spec), spec)


def test_keras_runs_unfamiliar_layers(tmp_path: Path) -> None:
    spec = saved(small(UNKNOWN["the activation gelu"]), tmp_path)
    by_keras = forward(load_backbone(tmp_path / MODEL_FILE, spec))
    assert not agrees(read(tmp_path / MODEL_FILE, spec), spec, by_keras)
    found = embedder_factory.embedder(tmp_path / MODEL_FILE, replace(spec, graph=True), {})
    np.testing.assert_array_equal(found(noise(spec, 3)), Embedder(by_keras, spec)(noise(spec, 3)))


@pytest.mark.parametrize("precision", ["mixed_float16", "mixed_bfloat16"])
def test_keras_runs_mixed_precision(precision: str, small_model: SmallModel, tmp_path: Path) -> None:
    spec = saved(in_precision(small_model(), precision), tmp_path)
    with pytest.raises(UnfamiliarLayerError, match="dtype"):
        GraphNetwork(read(tmp_path / MODEL_FILE, spec), spec)


def test_whatever_is_not_read_is_not_known(small_model: SmallModel, tmp_path: Path) -> None:
    """A later Keras may add settings."""
    spec = saved(small_model(), tmp_path)
    contents = read(tmp_path / MODEL_FILE, spec)
    GraphNetwork(contents, spec)

    def changed(change: Callable[[Any], object]) -> ModelContents:
        config = json.loads(json.dumps(contents.config))
        change(config)
        return ModelContents(config, contents.weights)

    def layer(config: Any) -> Any:
        return config["config"]["layers"][2]

    for change in (
        lambda config: layer(config)["config"].update(spin=1),
        lambda config: layer(config)["config"].pop("strides"),
        lambda config: layer(config).update(class_name="Conv3D"),
        lambda config: layer(config)["inbound_nodes"][0]["kwargs"].update(mask=1),
        lambda config: layer(config)["inbound_nodes"][0]["kwargs"].update(training=True),
        lambda config: layer(config).pop("inbound_nodes"),
        lambda config: config.update(class_name="Sequential"),
        lambda config: config["config"].update(output_layers=[["vector", 0, 0], ["vector", 0, 0]]),
    ):
        with pytest.raises(UnfamiliarLayerError):
            GraphNetwork(changed(change), spec)
    fewer = dict(list(contents.weights.items())[1:])
    more = {**contents.weights, "layers/dense/vars/0": np.zeros(3, np.float32)}
    for weights in (fewer, more):
        with pytest.raises((UnfamiliarLayerError, LibraryError)):
            GraphNetwork(ModelContents(contents.config, weights), spec)
    for wrong in (replace(spec, dimension=5), replace(spec, image_size=48)):
        with pytest.raises(UnfamiliarLayerError):
            GraphNetwork(contents, wrong)
        with pytest.raises(StageError, match="Push it again"):
            embedder_factory.embedder(tmp_path / MODEL_FILE, wrong, {})


def test_another_file_than_described_is_refused(small_model: SmallModel, tmp_path: Path) -> None:
    spec = saved(small_model(), tmp_path)
    with pytest.raises(StageError, match="do not belong together"):
        embedder_factory.embedder(tmp_path / MODEL_FILE, replace(spec, sha256="0" * 64), {})
    with pytest.raises(StageError, match="GPU_MEMORY_FRACTION"):
        embedder_factory.embedder(tmp_path / MODEL_FILE, spec, {"GPU_MEMORY_FRACTION": "2"})


def test_keras_runs_other_architectures_of_known_layers(small_model: SmallModel, tmp_path: Path) -> None:
    """A user's own network, unless its graph was compared with Keras when it was pushed."""
    spec = saved(small_model(), tmp_path)
    config = read(tmp_path / MODEL_FILE, spec).config
    assert not known_architecture(config)
    assert not known_architecture({"class_name": "Functional", "config": []})
    assert not isinstance(embedder_factory.embedder(tmp_path / MODEL_FILE, spec, {})._forward, GraphNetwork)
    assert fingerprint(config) == fingerprint(read_again(small_model(48, 4, seed=5), tmp_path))
    assert fingerprint(config) != fingerprint(read_again(small_model(32, 5), tmp_path))


def read_again(model: keras.Model, directory: Path) -> Any:
    spec = saved(model, directory)
    return read(directory / MODEL_FILE, spec).config


def test_a_graph_that_agrees_is_recorded_in_the_description(small_model: SmallModel, tmp_path: Path) -> None:
    small_model(64).save(tmp_path / "own.keras")
    spec, _ = make_backbone(str(tmp_path / "own.keras"), 224, None, tmp_path)
    assert spec.graph and parse_spec((tmp_path / SPEC_FILE).read_bytes()) == spec
    found = embedder_factory.embedder(tmp_path / MODEL_FILE, spec, {})
    assert isinstance(found._forward, GraphNetwork)
    by_keras = forward(load_backbone(tmp_path / MODEL_FILE, spec))
    np.testing.assert_array_equal(found(noise(spec, 3)), Embedder(by_keras, spec)(noise(spec, 3)))


def test_a_graph_that_differs_in_one_bit_is_not_used(small_model: SmallModel, tmp_path: Path) -> None:
    spec = saved(small_model(), tmp_path)
    by_keras = forward(load_backbone(tmp_path / MODEL_FILE, spec))

    def other(black: bool, pictures: NDArray[np.uint8]) -> NDArray[Any]:
        vectors = by_keras(pictures).copy()
        if pictures.any() != black:
            vectors[-1, -1] = np.nextafter(vectors[-1, -1], np.float32(9))
        return vectors

    assert agrees(read(tmp_path / MODEL_FILE, spec), spec, by_keras)
    for black in (True, False):
        assert not agrees(read(tmp_path / MODEL_FILE, spec), spec, partial(other, black))


def test_no_graph_is_compared_where_it_would_not_be_used(
    small_model: SmallModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = saved(small_model(), tmp_path)
    monkeypatch.setenv("TF_XLA_FLAGS", "--tf_xla_auto_jit=2")
    assert not agrees(read(tmp_path / MODEL_FILE, spec), spec, forward(load_backbone(tmp_path / MODEL_FILE, spec)))


def test_without_the_library_keras_runs_the_backbone(
    small_model: SmallModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = replace(saved(small_model(), tmp_path), graph=True)
    monkeypatch.setattr(tensorflow_library, "_FILE", "libtensorflow_cc.so.1")
    tensorflow_library.library.cache_clear()
    try:
        with pytest.raises(LibraryError, match="cannot open shared object"):
            OperationGraph()
        found = embedder_factory.embedder(tmp_path / MODEL_FILE, spec, {})
        assert not isinstance(found._forward, GraphNetwork)
        assert found(noise(spec, 3)).shape == (3, spec.dimension)
    finally:
        tensorflow_library.library.cache_clear()


def test_the_library_says_why_it_refuses() -> None:
    graph = OperationGraph()
    with pytest.raises(LibraryError, match="NoSuchKind"):
        graph.add("NoSuchKind")
    given = graph.placeholder(np.dtype(np.float32), [2, 3])
    doubled = graph.add("AddV2", given.value, given.value)
    with pytest.raises(LibraryError, match="[Dd]imension"):
        graph.add("AddV2", given.value, graph.variable(np.zeros((2, 4), np.float32)))
    session = GraphSession(graph)
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(session.run([(given, values)], doubled), 2 * values)
    with pytest.raises(LibraryError, match=r"\[3,2\] is not compatible with expected shape \[2,3\]"):
        session.run([(given, values.T)], doubled)
    with pytest.raises(LibraryError, match="feed a value"):
        session.run([], doubled)


def test_a_session_that_is_no_longer_used_gives_its_memory_back() -> None:
    """As the service needs it, which loads one backbone after the other."""

    def computed() -> None:
        graph = OperationGraph()
        given = graph.placeholder(np.dtype(np.float32), [1])
        values = graph.variable(np.ones(10_000_000, np.float32))
        product = graph.add("Mul", values, given.value)
        assert GraphSession(graph).run([(given, np.ones(1, np.float32))], product)[-1] == 1

    computed()
    before = held_mib()
    for _ in range(5):
        computed()
    assert held_mib() < before + 80


def held_mib() -> float:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_features_imports_neither_keras_nor_tensorflow(lite0: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom stages import features\n"
        "from stages.backbone import embedder_factory, feature_extractor\n"
        "from stages.backbone.backbone_spec import parse_spec\nfrom numpy import zeros\n"
        f"home = Path({str(lite0)!r})\nspec = parse_spec((home / '{SPEC_FILE}').read_bytes())\n"
        f"print(embedder_factory.embedder(home / '{MODEL_FILE}', spec, {{}})(zeros((1, 96, 96, 3), 'uint8')).shape)\n"
        "print({'keras', 'tensorflow', 'pandas', 'sklearn'} & sys.modules.keys())\n"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TF_")}
    done = subprocess.run([sys.executable, "-c", program], env=clean, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("no GPU: computing on the CPU\n(1, 1280)\nset()\n", "")


@pytest.mark.parametrize(
    ("environment", "config", "like"),
    [
        ({}, None, True),
        ({"KERAS_BACKEND": "tensorflow"}, '{"backend": "torch"}', True),
        ({"KERAS_BACKEND": "jax"}, None, False),
        ({}, '{"backend": "torch"}', False),
        ({}, '{"backend": "tensorflow", "floatx": "float32"}', True),
        ({}, "{", False),
        ({"TF_XLA_FLAGS": "--tf_xla_auto_jit=2"}, None, False),
    ],
)
def test_settings_of_keras_and_tensorflow(
    environment: dict[str, str], config: str | None, like: bool, tmp_path: Path
) -> None:
    if config is not None:
        (tmp_path / "keras.json").write_text(config)
    assert keras_parity.matches_keras({"CUDA_VISIBLE_DEVICES": "", "KERAS_HOME": str(tmp_path), **environment}) is like


def test_a_gpu_is_for_keras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keras_parity, "gpu_visible", lambda environment: environment != {"CUDA_VISIBLE_DEVICES": "-1"})
    here = {"KERAS_HOME": str(tmp_path), "NVIDIA_VISIBLE_DEVICES": "none"}
    assert not keras_parity.matches_keras(here)
    assert keras_parity.matches_keras({**here, "CUDA_VISIBLE_DEVICES": "-1"})
