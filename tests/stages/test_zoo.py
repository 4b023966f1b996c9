"""Making a backbone from a name or a file, and the messages of failures (of a download: test_models)."""

from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np
import pytest

from stages.backbone.backbone_spec import MODEL_FILE, SCALE_FILE, SPEC_FILE, BackboneSpec, parse_spec
from stages.backbone.backbones import load_backbone
from stages.backbone.efficientnet import LITE
from stages.backbone.embedder_factory import embedder
from stages.datum.contract import StageError
from stages.quality import distance_scale
from stages.zoo import main, make_backbone
from tests.stages.models import SmallModel


def test_efficientnet_lite0_states_its_origin(lite0: Path) -> None:
    spec = parse_spec((lite0 / SPEC_FILE).read_bytes())
    assert (spec.name, spec.image_size, spec.pooling, spec.dimension) == ("efficientnet-lite0", 96, "avg", 1280)
    assert (spec.batch, spec.precision, spec.weights.sha256) == (32, "float32", LITE["efficientnet-lite0"].sha256)
    assert not spec.graph and b"graph" not in (lite0 / SPEC_FILE).read_bytes()  # so that earlier pushes stay equal


@pytest.mark.parametrize("by_keras", [False, pytest.param(True, marks=pytest.mark.only_in_all)])
def test_a_name_is_built_to_the_same_bytes_again(
    by_keras: bool, lite0: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[Path] = []

    def load(path: Path, spec: BackboneSpec) -> keras.Model:
        loaded.append(path)
        return load_backbone(path, spec)

    monkeypatch.setattr("stages.zoo.load_backbone", load)
    for module in ("stages.zoo", "stages.backbone.embedder_factory"):
        monkeypatch.setattr(f"{module}.matches_keras", lambda environment: not by_keras)
    make_backbone("efficientnet-lite0", 96, None, tmp_path)
    assert loaded == [tmp_path / MODEL_FILE] * by_keras  # its graph tries it faster
    for name in (MODEL_FILE, SPEC_FILE):
        assert (tmp_path / name).read_bytes() == (lite0 / name).read_bytes()


def test_a_users_own_file_keeps_its_size(small_model: SmallModel, tmp_path: Path) -> None:
    small_model(48).save(tmp_path / "mine.keras")
    spec, _ = make_backbone(str(tmp_path / "mine.keras"), 96, None, tmp_path / "out")
    assert (spec.name, spec.image_size, spec.dimension, spec.pooling) == ("mine", 48, 4, "own")
    assert parse_spec((tmp_path / "out" / SPEC_FILE).read_bytes()) == spec


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    """A user's network that ends in dense layers, whose kernels take several rows at a time."""
    keras.utils.set_random_seed(0)
    pixels = keras.Input((32, 32, 3), dtype="uint8")
    x = keras.layers.Conv2D(16, 3, 2, activation="relu")(keras.layers.Rescaling(1 / 255)(pixels))
    x = keras.layers.Dense(64, activation="relu")(keras.layers.GlobalAveragePooling2D()(x))
    path = tmp_path / "dense.keras"
    keras.Model(pixels, keras.layers.Dense(48)(x)).save(path)
    return path


@pytest.mark.parametrize("as_graph", [True, False])
def test_a_vector_does_not_depend_on_its_place_in_a_batch(
    as_graph: bool, dense: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not as_graph:
        monkeypatch.setattr("stages.zoo.agrees", lambda *_: False)
    spec, _ = make_backbone(str(dense), 32, None, tmp_path / "out")
    assert spec.graph == as_graph and spec.batch in (32, 24)
    embed = embedder(tmp_path / "out" / MODEL_FILE, spec, {}, many=True)
    pictures = np.random.default_rng(1).integers(0, 256, (2 * spec.batch, 32, 32, 3), np.uint8)
    vectors = embed(pictures)
    for first in (1, 5, 11):
        np.testing.assert_array_equal(embed(pictures[first:]), vectors[first:])


@pytest.mark.parametrize(("sizes", "batch"), [((32, 24), 32), ((24,), 24), ((), 32)])
def test_batches_are_those_in_which_no_vector_depends_on_its_place(
    sizes: Sequence[int], batch: int, dense: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stages.zoo.even", lambda _, pictures: len(pictures) in sizes)
    spec, _ = make_backbone(str(dense), 32, None, tmp_path / "out")
    assert spec.batch == batch
    assert parse_spec((tmp_path / "out" / SPEC_FILE).read_bytes()) == spec
    embedder(tmp_path / "out" / MODEL_FILE, spec, {}).warm_up()  # the file and the description belong together


def test_a_network_of_batches_of_32_keeps_them(
    small_model: SmallModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stages.zoo.even", lambda *_: False)
    pixels = keras.Input((32, 32, 3), 32, dtype="uint8")
    keras.Model(pixels, small_model()(pixels)).save(tmp_path / "mine.keras")
    assert make_backbone(str(tmp_path / "mine.keras"), 32, None, tmp_path / "out")[0].batch == 32


@pytest.mark.only_in_all
def test_a_network_of_keras_is_made_of_weights_in_the_format_of_its_own(tmp_path: Path) -> None:
    keras.utils.set_random_seed(0)
    theirs = keras.applications.MobileNet(include_top=False, pooling="avg", weights=None, input_shape=(32, 32, 3))
    theirs.save(tmp_path / "weights.h5")  # the format that Keras's own weights come in
    spec, _ = make_backbone("mobilenet", 32, tmp_path / "weights.h5", tmp_path / "out")
    assert (spec.dimension, spec.pooling, spec.weights.origin) == (1024, "avg", "weights.h5")
    picture = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3), np.uint8)
    ours = load_backbone(tmp_path / "out" / MODEL_FILE, spec)
    found = keras.Model(ours.input, ours.get_layer("vector").input)(picture, training=False)  # not scaled to length 1
    expected = np.asarray(theirs(picture.astype(np.float32) / 127.5 - 1, training=False))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_weights_of_another_model_are_refused(small_model: SmallModel, tmp_path: Path) -> None:
    small_model().save_weights(tmp_path / "other.weights.h5")
    with pytest.raises(StageError, match=r"does not hold the weights of ResNet50 without its top"):
        make_backbone("resnet50", 96, tmp_path / "other.weights.h5", tmp_path)
    with pytest.raises(StageError, match="the file of weights .* does not exist"):
        make_backbone("resnet50", 96, tmp_path / "missing.h5", tmp_path)
    with pytest.raises(StageError, match="not a PyTorch weights file"):
        make_backbone("efficientnet-lite0", 96, tmp_path / "other.weights.h5", tmp_path)


def test_the_program_writes_a_scale_for_the_model(small_model: SmallModel, tmp_path: Path) -> None:
    small_model().save(tmp_path / "mine.keras")
    assert main([str(tmp_path / "mine.keras"), f"--out={tmp_path}"]) == 0
    spec = parse_spec((tmp_path / SPEC_FILE).read_bytes())
    content = (tmp_path / SCALE_FILE).read_bytes()
    scale = distance_scale.read(content, spec.sha256)
    assert scale is not None and 0 < scale.euclidean.very_similar <= scale.euclidean.similar
    assert main([str(tmp_path / "mine.keras"), f"--out={tmp_path}"]) == 0
    assert (tmp_path / SCALE_FILE).read_bytes() == content


def test_failures_are_one_line(small_model: SmallModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small_model().save(tmp_path / "mine.keras")
    (tmp_path / "mine.txt").write_text("no model")
    broken = small_model()
    broken.get_layer("one").set_weights([np.full_like(v, np.nan) for v in broken.get_layer("one").get_weights()])
    broken.save(tmp_path / "broken.keras")
    for arguments, reason in {
        (
            "efficientnet-lit2",
        ): "efficientnet-lit2 is neither the name of a backbone nor a file: did you mean efficientnet-",
        ("",): "neither the name of a backbone nor a file: `lookalike model list` shows all names",
        (f"{tmp_path}/mine.txt",): "does not have the name of a Keras 3 model",
        (f"{tmp_path}/mine.keras", f"--weights={tmp_path}/mine.txt"): "a .keras file has its own weights",
        (f"{tmp_path}/broken.keras",): "broken gives values that are not finite",
        ("efficientnet-lite0", "--image-size=8"): "it must be from 32 to 1024",
        (f"{tmp_path}/mine.keras", f"--out={tmp_path}/mine.txt"): "mine.txt: File exists",
    }.items():
        assert main([f"--out={tmp_path}", *arguments]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert reason in line
