"""A .keras file that carries vectors of the original model is taken only if it gives the same."""

from pathlib import Path

import keras
import numpy as np
import pytest

from stages.backbone.export_proof import ExportProof, apart, attach_proof, pictures, read_proof
from stages.datum.contract import StageError
from stages.zoo import make_backbone
from tests.stages.models import SmallModel


def test_equal_vectors_are_taken_and_others_refused(small_model: SmallModel, tmp_path: Path) -> None:
    model = small_model(48)
    vectors = model.predict_on_batch(pictures(48))
    for name, proved in {"good": vectors, "bad": vectors[::-1], "short": vectors[:, :2]}.items():
        model.save(tmp_path / f"{name}.keras")
        attach_proof(tmp_path / f"{name}.keras", ExportProof("the original", proved))
    spec, _ = make_backbone(str(tmp_path / "good.keras"), 224, None, tmp_path / "made")
    assert spec.weights.origin == "the original"
    for name in ("bad", "short"):
        with pytest.raises(StageError, match=rf"the vectors of {name}\.keras differ by .* from .* the original"):
            make_backbone(str(tmp_path / f"{name}.keras"), 224, None, tmp_path / "made")


def test_a_file_without_a_proof_has_none(small_model: SmallModel, tmp_path: Path) -> None:
    small_model().save(tmp_path / "mine.keras")
    (tmp_path / "broken.keras").write_bytes(b"PK")
    assert read_proof(tmp_path / "mine.keras") is None
    assert read_proof(tmp_path / "broken.keras") is None


def test_the_pictures_are_of_all_scales() -> None:
    shown = pictures(64)
    assert shown.shape == (4, 64, 64, 3)
    varied = [np.abs(np.diff(each.astype(int), axis=0)).mean() for each in shown]
    assert varied == sorted(varied, reverse=True)
    assert apart(np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32)[:, ::-1]) > 1


@keras.saving.register_keras_serializable("somebody")
class Doubled(keras.layers.Layer):  # type: ignore[misc]  # keras has no types
    def call(self, x: object) -> object:
        return x * 2  # type: ignore[operator]


def test_foreign_layers_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = keras.Input((32, 32, 3))
    vector = keras.layers.GlobalAveragePooling2D()(Doubled()(pixels))
    keras.Model(pixels, vector).save(tmp_path / "mine.keras")
    monkeypatch.setitem(keras.saving.get_custom_objects(), "somebody>Doubled", None)
    monkeypatch.setattr(Doubled, "__module__", "nowhere")
    with pytest.raises(StageError, match=r"mine\.keras has layers that are not Keras's own: Doubled of "):
        make_backbone(str(tmp_path / "mine.keras"), 224, None, tmp_path / "made")
