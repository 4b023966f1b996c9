"""Towers of KerasHub, OpenCLIP and ONNX, exported in their own environment, are pushed as plain models with equal
vectors."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from stages.backbone.backbone_spec import MODEL_FILE, SPEC_FILE, TEXT_FILE, parse_spec
from stages.backbone.text_tower import load_text_tower
from stages.zoo import main

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-towers" / "bin" / "python"

needs_keras_hub = pytest.mark.skipif(not PYTHON.exists(), reason="needs KerasHub: make towers")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with files of small towers, which the export has proved equal to KerasHub's own layers."""
    return _run("small.py", tmp_path_factory.mktemp("towers"))


@pytest.fixture(scope="module")
def from_onnx(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of ONNX files, whose towers are equal to what ONNX Runtime computes of them."""
    return _run("small_onnx.py", tmp_path_factory.mktemp("onnx"))


def _run(program: str, directory: Path) -> Path:
    done = subprocess.run(
        [PYTHON, ROOT / "tests" / "towers" / program, directory],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return directory


@needs_keras_hub
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("name", "size", "dimension"), [("dinov2", 56, 32), ("registers", 56, 32), ("alone", 32, 24)])
def test_an_exported_tower_is_a_backbone(exported: Path, tmp_path: Path, name: str, size: int, dimension: int) -> None:
    assert main([str(exported / f"{name}.keras"), f"--out={tmp_path}"]) == 0  # which compares the vectors again
    spec = parse_spec((tmp_path / SPEC_FILE).read_bytes())
    assert (spec.name, spec.image_size, spec.dimension) == (name, size, dimension)
    assert (tmp_path / MODEL_FILE).is_file()
    assert not (tmp_path / TEXT_FILE).exists()


@needs_keras_hub
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "dimension", "length"),
    [
        ("clip", 24, 77),
        ("siglip", 32, 64),
        ("siglip2", 32, 64),
        ("open-clip-False", 24, 20),
        ("open-clip-True", 24, 20),
    ],
)
def test_exported_presets_have_words(exported: Path, tmp_path: Path, name: str, dimension: int, length: int) -> None:
    assert main([str(exported / name), f"--out={tmp_path}"]) == 0  # which compares the vectors of both towers again
    spec = parse_spec((tmp_path / SPEC_FILE).read_bytes())
    assert (spec.name, spec.image_size, spec.dimension) == (name, 32, dimension)
    assert re.fullmatch(r"(KerasHub [\d.]+: .*presets/|OpenCLIP: )" + name, spec.weights.origin)
    tower = load_text_tower(tmp_path)
    assert tower is not None
    assert (tower.dimension, tower.length) == (dimension, length)
    small, capital, other = tower.embed(["a red bicycle", "A Red  BICYCLE", "a blue boat"])
    assert small.tobytes() == capital.tobytes() != other.tobytes()
    assert tower.unread("two dogs " * 100).startswith(("two dogs", "dogs two"))


@needs_keras_hub
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "dimension"), [("clip-14", 24), ("clip-17", 24), ("siglip-14", 32), ("siglip-17", 32)]
)
def test_towers_of_onnx_files_have_words(from_onnx: Path, tmp_path: Path, name: str, dimension: int) -> None:
    """small_onnx.py has also had bad files refused: quantised, of other architectures, weights elsewhere."""
    assert main([str(from_onnx / name), f"--out={tmp_path}"]) == 0
    spec = parse_spec((tmp_path / SPEC_FILE).read_bytes())
    assert (spec.name, spec.image_size, spec.dimension) == (name, 32, dimension)
    assert spec.weights.origin == f"ONNX: {name}"
    tower = load_text_tower(tmp_path)
    assert tower is not None
    assert (tower.dimension, tower.length) == (dimension, 20)
    small, spaces, other = tower.embed(["a red bicycle", "a red  bicycle", "a blue boat"])
    assert small.tobytes() == spaces.tobytes() != other.tobytes()
    assert tower.unread("two dogs " * 100).startswith(("two dogs", "dogs two"))


@needs_keras_hub
@pytest.mark.timeout(600)
def test_towers_of_two_presets_are_refused(exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image, words = exported / "siglip" / "siglip.keras", exported / "siglip2" / TEXT_FILE
    assert main([str(image), f"--text={words}", f"--out={tmp_path}"]) == 1
    assert "presets/siglip2, belongs to another image tower than siglip" in capsys.readouterr().err


@needs_keras_hub
@pytest.mark.timeout(600)
def test_layers_of_keras_hub_are_refused(exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(exported / "foreign.keras"), f"--out={tmp_path}"]) == 1
    assert "foreign.keras has layers that are not Keras's own: DINOV2Backbone of keras_hub" in capsys.readouterr().err


def test_both_environments_have_the_same_keras() -> None:
    ours, theirs = (
        re.search(r"^keras==(\S+)", (ROOT / lock).read_text(), re.MULTILINE)
        for lock in ("requirements.lock", "towers/requirements.lock")
    )
    assert ours is not None
    assert theirs is not None
    assert ours[1] == theirs[1]
