"""A backbone's files: equal models give equal bytes, and only the described model is loaded."""

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np
import pytest

from stages.backbone.backbone_file import identity
from stages.backbone.backbone_spec import MODEL_FILE, SPEC_FILE, BackboneSpec, WeightsOrigin, parse_spec
from stages.backbone.backbones import describe, load_backbone, load_keras, save_backbone
from stages.datum.contract import StageError
from tests.stages.models import SmallModel

HERE = WeightsOrigin("a test", "0" * 64)


def save(model: keras.Model, directory: Path, name: str = "small") -> BackboneSpec:
    directory.mkdir(exist_ok=True)
    return save_backbone(model, describe(model, name, "avg", HERE), directory)


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_equal_models_give_equal_bytes(small_model: SmallModel, tmp_path: Path) -> None:
    one = save(small_model(), tmp_path / "one")
    two = save(small_model(), tmp_path / "two")
    assert one == two
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert files(tmp_path / "one").keys() == {MODEL_FILE, SPEC_FILE}


def test_a_loaded_model_is_saved_as_the_same_bytes(small_model: SmallModel, tmp_path: Path) -> None:
    spec = save(small_model(), tmp_path / "one")
    save(load_backbone(tmp_path / "one" / MODEL_FILE, spec), tmp_path / "two")
    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_the_training_configuration_makes_no_difference(small_model: SmallModel, tmp_path: Path) -> None:
    plain = save(small_model(), tmp_path / "plain")
    trained = small_model()
    trained.compile("adam", "mse")
    trained.optimizer.build(trained.trainable_variables)
    trained.save(tmp_path / "mine.keras")
    assert save(load_keras(tmp_path / "mine.keras"), tmp_path / "trained") == plain
    assert files(tmp_path / "plain") == files(tmp_path / "trained")


def test_a_change_of_weights_or_batch_or_graph_is_another_identity(small_model: SmallModel, tmp_path: Path) -> None:
    first = save(small_model(), tmp_path / "a")
    others = {
        save(small_model(seed=1), tmp_path / "b").sha256,
        save(small_model(dimension=5), tmp_path / "c").sha256,
        identity(tmp_path / "a" / MODEL_FILE, replace(first, batch=8)),
        identity(tmp_path / "a" / MODEL_FILE, replace(first, precision="float16")),
    }
    assert len(others | {first.sha256}) == 5


def test_a_name_is_not_part_of_the_identity(small_model: SmallModel, tmp_path: Path) -> None:
    assert save(small_model(), tmp_path / "a").sha256 == save(small_model(), tmp_path / "b", "another").sha256


def test_the_archive_is_uncompressed_and_has_no_dates(small_model: SmallModel, tmp_path: Path) -> None:
    save(small_model(), tmp_path)
    with zipfile.ZipFile(tmp_path / MODEL_FILE) as archive:
        assert {(entry.date_time, entry.compress_type) for entry in archive.infolist()} == {((1980, 1, 1, 0, 0, 0), 0)}
        assert set(json.loads(archive.read("metadata.json"))) == {"keras_version"}


def test_objects_that_layers_share_are_numbered(tmp_path: Path) -> None:
    def model() -> keras.Model:
        pixels = keras.Input((32, 32, 3), name="pixels")
        inner = keras.layers.ReLU(name="inner")
        x = keras.layers.TimeDistributed(inner, name="outer")(pixels)
        x = keras.layers.TimeDistributed(inner, name="again")(x)
        return keras.Model(pixels, keras.layers.GlobalAveragePooling2D(name="vector")(x), name="shared")

    save(model(), tmp_path / "a")
    save(model(), tmp_path / "b")
    assert files(tmp_path / "a") == files(tmp_path / "b")
    with zipfile.ZipFile(tmp_path / "a" / MODEL_FILE) as archive:
        assert archive.read("config.json").count(b'"shared_object_id": 0') == 1  # otherwise an address


def unsuitable(kind: str) -> keras.Model:
    pixels = keras.Input(
        {"oblong": (32, 48, 3), "grey": (32, 32, 1), "any size": (None, None, 3)}.get(kind, (32, 32, 3))
    )
    vector = keras.layers.GlobalAveragePooling2D()(pixels)
    if kind == "two outputs":
        return keras.Model(pixels, [vector, vector])
    if kind == "two inputs":
        return keras.Model([pixels, keras.Input((32, 32, 3))], vector)
    return keras.Model(pixels, pixels if kind == "a map" else vector)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("oblong", "one fixed square size"),
        ("grey", "one fixed square size"),
        ("any size", "one fixed square size"),
        ("two inputs", "2 inputs"),
        ("two outputs", "2 outputs"),
        ("a map", "end it with GlobalAveragePooling2D"),
    ],
)
def test_unsuitable_models_are_refused_with_the_change_they_need(kind: str, reason: str) -> None:
    with pytest.raises(StageError, match=reason):
        describe(unsuitable(kind), "mine", "own", HERE)


def test_files_that_do_not_belong_together_are_refused(small_model: SmallModel, tmp_path: Path) -> None:
    one = save(small_model(), tmp_path / "one")
    save(small_model(seed=1), tmp_path / "two")
    with pytest.raises(StageError, match="do not belong together"):
        load_backbone(tmp_path / "two" / MODEL_FILE, one)
    with pytest.raises(StageError, match="states 64 pixels and 4 dimensions, but the model has 32 and 4"):
        load_backbone(tmp_path / "one" / MODEL_FILE, replace(one, image_size=64))


@pytest.mark.parametrize("keep", [0, 100, 5000])
def test_a_damaged_file_is_refused(small_model: SmallModel, tmp_path: Path, keep: int) -> None:
    spec = save(small_model(), tmp_path)
    (tmp_path / MODEL_FILE).write_bytes((tmp_path / MODEL_FILE).read_bytes()[:keep])
    with pytest.raises(StageError, match=r"not a \.keras file of Keras 3, or it is damaged"):
        load_backbone(tmp_path / MODEL_FILE, spec)
    with pytest.raises(StageError, match="cannot be loaded as a Keras model"):
        load_keras(tmp_path / MODEL_FILE)


def rewritten(path: Path, change: Callable[[h5py.File], None], config: str | None = None) -> Path:
    """A .keras file with a change in its weights, or another configuration."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    weights = io.BytesIO(members["model.weights.h5"])
    with h5py.File(weights, "r+") as file:
        change(file)
    members |= {"model.weights.h5": weights.getvalue()} | ({} if config is None else {"config.json": config.encode()})
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def first_array(file: h5py.File) -> str:
    names: list[str] = []
    file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    return names[0]


def replace_array(file: h5py.File, **stored: Any) -> None:
    name = first_array(file)
    shape, dtype = file[name].shape, file[name].dtype
    del file[name]
    file.create_dataset(name, stored.pop("shape", shape), dtype, **stored)


def link_array(file: h5py.File, link: Any) -> None:
    name = first_array(file)
    del file[name]
    file[name] = link


def map_array(file: h5py.File) -> None:
    name = first_array(file)
    layout = h5py.VirtualLayout(file[name].shape, file[name].dtype)
    layout[...] = h5py.VirtualSource("/etc/hostname", "x", file[name].shape)
    del file[name]
    file.create_virtual_dataset(name, layout)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda file: replace_array(file, external=[("/etc/hostname", 0, h5py.h5f.UNLIMITED)]), "is stored elsewhere"),
        (lambda file: link_array(file, h5py.ExternalLink("/tmp/other.h5", "x")), "is stored elsewhere"),
        (lambda file: link_array(file, h5py.SoftLink("/other")), "is stored elsewhere"),
        (map_array, "is stored elsewhere"),
        (lambda file: replace_array(file, shape=(40_000, 40_000), chunks=True, compression="gzip"), "it expands from"),
    ],
    ids=["external", "external link", "soft link", "virtual", "huge"],
)
def test_weights_that_are_elsewhere_or_huge_are_refused_before_they_are_read(
    small_model: SmallModel, tmp_path: Path, change: Callable[[h5py.File], None], reason: str
) -> None:
    spec = save(small_model(), tmp_path)
    path = rewritten(tmp_path / MODEL_FILE, change)
    for load in (load_keras, lambda file: load_backbone(file, spec)):
        with pytest.raises(StageError, match=reason):
            load(path)


def test_a_configuration_that_is_nested_too_deeply_is_refused(small_model: SmallModel, tmp_path: Path) -> None:
    spec = save(small_model(), tmp_path)
    path = rewritten(tmp_path / MODEL_FILE, lambda file: None, "[" * 100_000 + "]" * 100_000)
    with pytest.raises(StageError, match="it is nested too deeply"):
        load_backbone(path, spec)
    with pytest.raises(StageError, match="cannot be loaded as a Keras model"):
        load_keras(path)


def test_an_archive_that_expands_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / MODEL_FILE, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", "{}")
        archive.writestr("model.weights.h5", bytes(64 << 20))
    with pytest.raises(StageError, match="it expands from"):
        load_keras(tmp_path / MODEL_FILE)


def test_code_in_a_model_is_refused(tmp_path: Path) -> None:
    pixels = keras.Input((32, 32, 3))
    x = keras.layers.Lambda(lambda x: x * 2)(pixels)
    keras.Model(pixels, keras.layers.GlobalAveragePooling2D()(x)).save(tmp_path / "lambda.keras")
    with pytest.raises(StageError, match="Lambda"):
        load_keras(tmp_path / "lambda.keras")


def test_a_model_that_takes_floats_gets_the_raw_values(tmp_path: Path) -> None:
    pixels = keras.Input((32, 32, 3), name="pixels")
    save(keras.Model(pixels, keras.layers.GlobalAveragePooling2D(name="v")(pixels), name="m"), tmp_path)
    model = load_backbone(tmp_path / MODEL_FILE, parse_spec((tmp_path / SPEC_FILE).read_bytes()))
    picture = np.full((1, 32, 32, 3), [1, 128, 255], np.uint8)
    np.testing.assert_array_equal(model.predict_on_batch(picture), [[1, 128, 255]])
