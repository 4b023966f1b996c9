import json
from pathlib import Path

import keras
import pytest
from PIL import Image
from skimage import data

from pipelines.analysis.stage_runs import StageDatum, StageInput, run
from pipelines.errors import LookalikeError
from stages.backbone.backbone_spec import WeightsOrigin
from stages.backbone.backbones import describe, save_backbone
from tests import fake_gpus

VARIABLES = {"IMAGE_SIZE": "32", "FIT": "pad"}


def _photograph(path: Path) -> Path:
    Image.fromarray(data.astronaut()).save(path)
    return path


def test_one_process_runs_a_stage_on_several_datums(tmp_path: Path) -> None:
    works = [
        StageDatum({"images": StageInput(_photograph(tmp_path / f"{name}.png"), f"{name}.png")}, tmp_path / "out")
        for name in ("a", "b")
    ]
    done: list[int] = []
    run("preprocess", works, VARIABLES, done.append)
    assert done == [0, 1, 1]
    assert len(list((tmp_path / "out" / "library").rglob("*.pack"))) == 2


def test_a_folder_called_stages_here_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stages").mkdir()
    (tmp_path / "stages" / "preprocess.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "notes.txt"
    file.write_text("not a picture")
    run("preprocess", [StageDatum({"images": StageInput(file, file.name)}, tmp_path / "out")], VARIABLES)
    (rejected,) = (tmp_path / "out" / "rejected").rglob("*.jsonl")
    assert json.loads(rejected.read_text())["source"] == "notes.txt"


def test_a_stage_that_fails_raises_its_reason(tmp_path: Path) -> None:
    work = StageDatum({"images": StageInput(_photograph(tmp_path / "a.png"), "a.png")}, tmp_path / "out")
    with pytest.raises(LookalikeError, match="IMAGE_SIZE"):
        run("preprocess", [work], {**VARIABLES, "IMAGE_SIZE": "0"})


def test_a_stage_that_runs_here_uses_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds no lease: TensorFlow would take the memory of a GPU that the server leases to a worker."""
    pixels = keras.Input((32, 32, 3), dtype="uint8", name="pixels")
    x = keras.layers.Flatten()(keras.layers.Rescaling(1 / 255)(pixels))
    # No graph has softsign, so Keras runs it.
    model = keras.Model(pixels, keras.layers.Activation("softsign")(x), name="small")
    for name, value in fake_gpus.variables(tmp_path / "log").items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    backbone, packs = tmp_path / "backbone", tmp_path / "packs"
    backbone.mkdir()
    save_backbone(model, describe(model, "small", "", WeightsOrigin("a test", "")), backbone)
    run("preprocess", [StageDatum({"images": StageInput(_photograph(tmp_path / "a.png"), "a.png")}, packs)], VARIABLES)
    (part,) = {path.parent for path in (packs / "library").rglob("*.pack")}
    given = {"models": StageInput(backbone, ""), "pictures": StageInput(part, f"library/{part.name}")}
    run("features", [StageDatum(given, tmp_path / "out")], {"CUDA_VISIBLE_DEVICES": "0"})
    assert list((tmp_path / "out" / "library").rglob("*.npy"))
    assert (tmp_path / "log").read_text() == "0 GPU\n"
