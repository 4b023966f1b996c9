import json
from pathlib import Path

import pytest
from PIL import Image
from skimage import data

from pipelines.errors import LookalikeError
from pipelines.explaining.stageruns import Given, Work, run

VARIABLES = {"IMAGE_SIZE": "32", "FIT": "pad", "BUCKETS": "4"}


def _photograph(path: Path) -> Path:
    Image.fromarray(data.astronaut()).save(path)
    return path


def test_one_process_runs_a_stage_on_several_datums(tmp_path: Path) -> None:
    works = [
        Work({"images": Given(_photograph(tmp_path / f"{name}.png"), f"{name}.png")}, tmp_path / "out")
        for name in ("a", "b")
    ]
    begun: list[int] = []
    run("preprocess", works, VARIABLES, begun.append)
    assert begun == [1, 2]
    assert len(list((tmp_path / "out" / "library").rglob("*.npy"))) == 2


def test_a_folder_called_stages_here_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stages").mkdir()
    (tmp_path / "stages" / "preprocess.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "notes.txt"
    file.write_text("not a picture")
    run("preprocess", [Work({"images": Given(file, file.name)}, tmp_path / "out")], VARIABLES)
    (rejected,) = (tmp_path / "out" / "rejected").rglob("*.jsonl")
    assert json.loads(rejected.read_text())["source"] == "notes.txt"


def test_a_stage_that_fails_raises_its_reason(tmp_path: Path) -> None:
    work = Work({"images": Given(_photograph(tmp_path / "a.png"), "a.png")}, tmp_path / "out")
    with pytest.raises(LookalikeError, match="IMAGE_SIZE"):
        run("preprocess", [work], {**VARIABLES, "IMAGE_SIZE": "0"})
