"""A text tower becomes part of a model if it is the original's and belongs to the image tower, and is refused else."""

import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest
from numpy.typing import NDArray

from stages.backbone import export_proof
from stages.backbone.backbone_spec import MODEL_FILE, TEXT_FILE
from stages.backbone.export_proof import TextProof
from stages.backbone.text_tower import load_text_tower
from stages.zoo import main
from tests.stages.models import SmallModel
from tests.stages.text_towers import small_tokenizer, write_text_tower


def seen(model: keras.Model) -> NDArray[np.float32]:
    """Its vectors of the pictures of proofs, of length 1."""
    vectors = np.asarray(model.predict_on_batch(export_proof.pictures(32)))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


@pytest.fixture(scope="module")
def exported(small_model: SmallModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with both towers of a model, as towers.export leaves it."""
    directory = tmp_path_factory.mktemp("exported")
    model = small_model()
    model.save(directory / "small.keras")
    write_text_tower(directory, pictures=seen(model))
    return directory


def test_both_towers_are_taken_together(exported: Path, tmp_path: Path) -> None:
    assert main([str(exported), f"--out={tmp_path / 'one'}"]) == 0
    tower, original = load_text_tower(tmp_path / "one"), load_text_tower(exported)
    assert tower is not None and original is not None
    assert tower.embed(["a red boat"]).tobytes() == original.embed(["a red boat"]).tobytes()

    apart = [str(exported / "small.keras"), f"--text={exported / TEXT_FILE}", f"--out={tmp_path / 'two'}"]
    assert main(apart) == 0
    assert (tmp_path / "two" / TEXT_FILE).read_bytes() == (tmp_path / "one" / TEXT_FILE).read_bytes()
    assert main([str(exported / "small.keras"), f"--out={tmp_path / 'bare'}"]) == 0
    assert not (tmp_path / "bare" / TEXT_FILE).exists()
    assert (tmp_path / "bare" / MODEL_FILE).read_bytes() == (tmp_path / "one" / MODEL_FILE).read_bytes()


def test_towers_that_do_not_belong_are_refused(
    exported: Path, small_model: SmallModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(text: Path, *said: str, image: Path = exported / "small.keras") -> None:
        assert main([str(image), f"--text={text}", f"--out={tmp_path / 'out'}"]) == 1
        error = capsys.readouterr().err
        assert all(each in error for each in said), error
        assert "Traceback" not in error and len(error.splitlines()) == 1

    refused(tmp_path / "nosuch.keras", "nosuch.keras does not exist")
    refused(exported / "small.keras", "small.keras takes uint8 (None, 32, 32, 3); a text tower takes")

    wide = write_text_tower(tmp_path / "wide", dimension=8)
    refused(wide, "gives vectors of 8 dimensions, and the image tower small of 4: they are not of one model")

    small_model(seed=3).save(tmp_path / "other.keras")
    refused(
        exported / TEXT_FILE,
        "text-tower.keras, of a test, belongs to another image tower than other: its words would find anything",
        image=tmp_path / "other.keras",
    )

    bare = tmp_path / "bare.keras"
    with zipfile.ZipFile(exported / TEXT_FILE) as source, zipfile.ZipFile(bare, "w") as target:
        for name in source.namelist():
            if name != "lookalike.json":
                target.writestr(name, source.read(name))
    refused(bare, "bare.keras does not say which texts gave which vectors, so nothing proves it: export both towers")

    # Another vocabulary of the same size: every number has a word, but of another meaning.
    proof = export_proof.read_text_proof(exported / TEXT_FILE)
    assert proof is not None
    foreign = small_tokenizer(texts=["completely other words, and nothing of bicycles or snow"] * 3)
    swapped = tmp_path / "swapped.keras"
    with zipfile.ZipFile(exported / TEXT_FILE) as source, zipfile.ZipFile(swapped, "w") as target:
        for name in ("config.json", "metadata.json", "model.weights.h5"):
            target.writestr(name, source.read(name))
    export_proof.attach_text_proof(swapped, TextProof("a test", proof.vectors, proof.pictures), foreign.to_str())
    refused(swapped, "the vectors of swapped.keras differ by", "its tokenizer or its weights are not those")


def test_a_directory_without_one_image_tower_is_refused(
    exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path), f"--out={tmp_path / 'out'}"]) == 1
    assert "holds 0 .keras files beside text-tower.keras, not one image tower: push its file" in capsys.readouterr().err
