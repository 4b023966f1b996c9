"""Models that strangers made: every stage refuses them in words, soon, and without taking memory for them."""

import io
import json
import os
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import h5py
import keras
import pytest

from stages import zoo
from stages.backbone import embedder_factory
from stages.backbone.backbone_file import check, identity
from stages.backbone.backbone_spec import MODEL_FILE, SPEC_FILE, BackboneSpec, WeightsOrigin, format_spec, read_models
from stages.backbone.backbones import load_backbone, load_keras
from stages.classify import classifier
from stages.classify.training.run_records import MODEL
from stages.datum.contract import StageError

SPEC = BackboneSpec("hostile", 32, "own", 4, 32, "float32", WeightsOrigin("a stranger", "0" * 64), "1" * 64)

Json = dict[str, Any]


def layer(kind: str, name: str, before: str, shape: list[int | None], **config: Any) -> Json:
    """A layer of Keras in a configuration, called with the output of the one before, which has a shape."""
    history = {"dtype": "float32", "keras_history": [before, 0, 0], "shape": shape}
    tensor = {"class_name": "__keras_tensor__", "config": history}
    return {
        "module": "keras.layers",
        "class_name": kind,
        "registered_name": None,
        "name": name,
        "config": {"name": name, "trainable": True, "dtype": "float32", **config},
        "inbound_nodes": [{"args": [tensor], "kwargs": {}}],
    }


def network(*layers: Json, side: int = 32) -> Json:
    """The configuration of a network from pictures to what the last layer gives."""
    pixels = layer("InputLayer", "pixels", "", [], batch_shape=[None, side, side, 3]) | {"inbound_nodes": []}
    del pixels["config"]["trainable"]
    inner = {
        "name": "hostile",
        "trainable": True,
        "layers": [pixels, *layers],
        "input_layers": ["pixels", 0, 0],
        "output_layers": [layers[-1]["name"], 0, 0],
    }
    return {
        "module": "keras.src.models.functional",
        "class_name": "Functional",
        "config": inner,
        "registered_name": "Functional",
    }


MEAN = layer("GlobalAveragePooling2D", "mean", "pixels", [None, 32, 32, 3])


def dense(units: int, name: str = "wide", before: str = "mean", width: int = 3, **more: Any) -> Json:
    return layer("Dense", name, before, [None, width], units=units) | more


def padded(edge: int) -> Json:
    return layer("ZeroPadding2D", "padded", "pixels", [None, 32, 32, 3], padding=[[edge, edge], [edge, edge]])


def chain(count: int) -> list[Json]:
    names = ["mean", *(f"r{at}" for at in range(count))]
    return [layer("ReLU", own, before, [None, 3]) for before, own in pairwise(names)]


def lies(units: int) -> Json:
    """A layer that says it is built for one number a picture, and gets many."""
    return dense(units, "second", "wide", units, build_config={"input_shape": [None, 1]})


CONFIGURATIONS: Mapping[str, Callable[[], Json]] = {
    "a giant layer": lambda: network(MEAN, dense(300_000_000)),
    "a giant kernel": lambda: network(
        layer("Conv2D", "wide", "pixels", [None, 32, 32, 3], filters=1000, kernel_size=[1000, 1000])
    ),
    "a giant vocabulary": lambda: network(
        MEAN, layer("Embedding", "words", "mean", [None, 3], input_dim=100_000, output_dim=10_000)
    ),
    "layers that are large together": lambda: network(MEAN, dense(30_000), dense(30_000, "second", "wide", 30_000)),
    "a layer that lies": lambda: network(MEAN, dense(30_000), lies(30_000)),
    "a layer built too large": lambda: network(MEAN, dense(4, build_config={"input_shape": [None, 300_000_000]})),
    "a normaliser built too large": lambda: network(
        MEAN,
        layer("Normalization", "wide", "mean", [None, 3], axis=[-1], mean=0.0, variance=1.0)
        | {"build_config": {"input_shape": [None, 10_000_000_000]}},
    ),
    "giant pictures": lambda: network(MEAN, dense(4), side=100_000),
    "giant edges": lambda: network(
        padded(50_000), layer("GlobalAveragePooling2D", "mean", "padded", [None, 100_032, 100_032, 3])
    ),
    "too many layers": lambda: network(MEAN, *chain(6_000)),
    "many layers within layers": lambda: network(
        MEAN, layer("Wrapper", "wrapper", "mean", [None, 3], layer=network(MEAN, *chain(20_000)))
    ),
}


def write(path: Path, config: Json, weights: bytes = b"") -> Path:
    """A .keras file of a configuration; without weights, one of few numbers."""
    if not weights:
        few = io.BytesIO()
        with h5py.File(few, "w") as file:
            file["layers/dense/vars/0"] = [0.5] * 12
        weights = few.getvalue()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata.json", json.dumps({"keras_version": keras.__version__}))
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("model.weights.h5", weights)
    return path


def by_push(directory: Path) -> None:
    zoo.make_backbone(str(directory / MODEL_FILE), 32, None, directory / "made")


def by_features_or_the_service(directory: Path) -> None:
    file, spec = read_models(directory)
    embedder_factory.embedder(file, spec, {})


def by_training(directory: Path) -> None:
    file, spec = read_models(directory)
    check(file, spec)
    load_backbone(file, spec)


def by_promotion(directory: Path) -> None:
    os.link(directory / MODEL_FILE, directory / MODEL)
    (directory / "labels.json").write_text("{}")
    classifier.open(directory)


REASONS = (
    "its layers have",
    "is incompatible",
    "numbers for each picture",
    "layers, and the most are",
    "has more than 4 MiB",
)

DOORS = [by_push, by_features_or_the_service, by_training, by_promotion]


@contextmanager
def soon_and_small() -> Iterator[None]:
    """Fails unless the block takes less than a second of the processor, and less than 300 MB."""
    Path("/proc/self/clear_refs").write_text("5")  # the highest memory begins anew
    before, began = highest(), time.process_time()
    yield
    assert time.process_time() - began < 1
    assert highest() - before < 300 << 20


def highest() -> int:
    """The most bytes of memory that this process has had."""
    (line,) = (each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith("VmHWM"))
    return int(line.split()[1]) << 10


@pytest.fixture(scope="module")
def _warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What the first model of a process takes is not the file's."""
    directory = tmp_path_factory.mktemp("first")
    load_keras(fine(directory))


def fine(directory: Path) -> Path:
    pixels = keras.Input((32, 32, 3))
    keras.Model(pixels, keras.layers.Dense(4)(keras.layers.GlobalAveragePooling2D()(pixels))).save(
        directory / MODEL_FILE
    )
    return directory / MODEL_FILE


@pytest.mark.usefixtures("_warm")
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_every_door_refuses_a_model_that_is_larger_than_its_file(tmp_path: Path, name: str) -> None:
    write(tmp_path / MODEL_FILE, CONFIGURATIONS[name]())
    (tmp_path / SPEC_FILE).write_text(format_spec(with_identity(tmp_path / MODEL_FILE)))
    for door in DOORS:
        with soon_and_small(), pytest.raises(StageError) as error:
            door(tmp_path)
        assert any(each in str(error.value) for each in REASONS), (door, error.value)


def with_identity(file: Path) -> BackboneSpec:
    """A description that fits the file, as far as that can be told of it."""
    try:
        return BackboneSpec(**{**vars(SPEC), "sha256": identity(file, SPEC)})
    except StageError:
        return SPEC


@pytest.mark.parametrize(
    ("field", "value"),
    [("batch", 10**9), ("image_size", 10**6), ("dimension", 10**12), ("name", "x" * 100_000)],
)
def test_a_description_that_does_not_fit_in_memory_is_refused(tmp_path: Path, field: str, value: Any) -> None:
    fine(tmp_path)
    (tmp_path / SPEC_FILE).write_text(format_spec(BackboneSpec(**{**vars(SPEC), field: value})))
    with pytest.raises(StageError, match=r"backbone\.json in the repo models is not a description of a backbone"):
        read_models(tmp_path)


def test_a_model_that_is_as_large_as_its_file_is_loaded(tmp_path: Path) -> None:
    assert load_keras(fine(tmp_path)).count_params() == 16
