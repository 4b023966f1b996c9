"""Owns the backbones to measure with: named ones, users' files, and the article's with random weights, for pictures of
the article's size. Measures nothing."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.races import original
from pipelines.library import backbone_push
from stages.backbone.backbone_spec import SPEC_FILE, BackboneSpec, parse_spec

RESNET50 = "resnet50"

_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Backbone:
    """A backbone as `lookalike model push` takes it, by name or .keras file with a file of weights; or a directory that
    already holds a backbone's two files."""

    source: str
    weights: Path | None = None

    def write(self, directory: Path, side: int | None = None) -> BackboneSpec:
        """Writes its two files to a new directory. side: that of its pictures in pixels, by default the original
        experiment's. Raises LookalikeError if it cannot be made."""
        if Path(self.source).is_dir():
            shutil.copytree(self.source, directory)
            return parse_spec((directory / SPEC_FILE).read_bytes())
        directory.mkdir()
        options = [f"--image-size={side or original.image_size()}"]
        options += [] if self.weights is None else [f"--weights={self.weights}"]
        return backbone_push.make(self.source, options, directory)[0]


def random_resnet50(directory: Path) -> Backbone:
    """The article's network with random weights, which make no difference to the speed and are written to a directory.
    Raises RuntimeError if they cannot be written."""
    weights = directory / "random.weights.h5"
    command = [sys.executable, "-m", "benchmarks.races.weights", str(weights)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise RuntimeError(f"random weights cannot be written: {done.stderr.strip().splitlines()[-1:]}")
    return Backbone(RESNET50, weights)
