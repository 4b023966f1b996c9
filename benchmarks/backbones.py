"""Owns the backbones that are measured: named ones, files of users, and the article's with random weights. Measures
nothing."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from pipelines.library import models
from stages.backbonespec import SPEC_FILE, BackboneSpec, parse_spec

RESNET50 = "resnet50"

_ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Backbone:
    """What is asked for, as `lookalike model push` takes it: a name or a .keras file, and a file of weights. Or a
    directory that holds a backbone's two files already."""

    source: str
    weights: Path | None = None

    def write(self, directory: Path) -> BackboneSpec:
        """Makes its two files in a directory, which is made. Raises LookalikeError if it cannot be made."""
        if Path(self.source).is_dir():
            shutil.copytree(self.source, directory)
            return parse_spec((directory / SPEC_FILE).read_bytes())
        directory.mkdir()
        options = [] if self.weights is None else [f"--weights={self.weights}"]
        return models.make(self.source, options, directory)[0]


def random_resnet50(directory: Path) -> Backbone:
    """The article's network with random weights, which are written to a directory: they do not change the speed. Raises
    RuntimeError if they cannot be written."""
    weights = directory / "random.weights.h5"
    command = [sys.executable, "-m", "benchmarks.weights", str(weights)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise RuntimeError(f"random weights cannot be written: {done.stderr.strip().splitlines()[-1:]}")
    return Backbone(RESNET50, weights)
