"""Image towers of KerasHub, exported in their own environment, are pushed as plain backbones with equal vectors."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from stages.backbone.backbone_spec import MODEL_FILE, SPEC_FILE, parse_spec
from stages.zoo import main

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-towers" / "bin" / "python"

needs_keras_hub = pytest.mark.skipif(not PYTHON.exists(), reason="needs KerasHub: make towers")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with files of small towers, which the export has proved equal to KerasHub's own layers."""
    directory = tmp_path_factory.mktemp("towers")
    done = subprocess.run(
        [PYTHON, ROOT / "tests" / "towers" / "small.py", directory],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return directory


@needs_keras_hub
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("name", "size", "dimension"), [("dinov2", 56, 32), ("registers", 56, 32), ("clip", 32, 24), ("siglip", 32, 32)]
)
def test_an_exported_tower_is_a_backbone(exported: Path, tmp_path: Path, name: str, size: int, dimension: int) -> None:
    assert main([str(exported / f"{name}.keras"), f"--out={tmp_path}"]) == 0  # which compares the vectors again
    spec = parse_spec((tmp_path / SPEC_FILE).read_bytes())
    assert (spec.name, spec.image_size, spec.dimension) == (name, size, dimension)
    assert spec.weights.origin == f"a small {name}"
    assert (tmp_path / MODEL_FILE).is_file()


@needs_keras_hub
@pytest.mark.timeout(300)
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
