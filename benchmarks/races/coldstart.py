"""Owns the measurement of the cold start of features: a process that computes the first 32 pictures, beside one that
imports TensorFlow and does nothing, in turns. In processor time, which does not count the machine's other work."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.kit.report import Result, Row, line, timed
from benchmarks.races import pictures
from benchmarks.races.backbones import Backbone

PICTURES = 32
"""Those of one forward pass."""

BACKBONE = "efficientnet-lite0"
MORE = 1.2
"""Seconds that a start may take longer than the bare import."""

_IMPORT = (sys.executable, "-c", "import tensorflow")
_ROOT = Path(__file__).resolve().parents[2]


def measure(rounds: int) -> Result:
    """The best of several rounds, after one that fills the caches of the file system and of Python."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        place = Path(scratch)
        split = pictures.split(place, 2 * PICTURES, None)
        pictures.write_library(split.library[:PICTURES], place, place / "packs")
        Backbone(BACKBONE).write(place / "models")
        (part,) = (place / "packs" / "library").iterdir()
        given = [f"--input=models={place / 'models'}", f"--input=pictures={place / 'packs'}::library/{part.name}"]
        commands = {
            "ours": (sys.executable, "-m", "stages.features", *given, f"--out={place / 'features'}"),
            "bound": _IMPORT,
        }
        taken = [{name: _taken(command) for name, command in commands.items()} for _ in range(rounds + 1)][1:]
    best = {name: [min(column) for column in zip(*(each[name] for each in taken), strict=True)] for name in commands}
    what = f"cold start of features, {PICTURES} pictures of {BACKBONE}, beside `import tensorflow`"
    goal = f"at most {MORE} s more"
    return Result(
        tuple(Row("cold", name, seconds[0]) for name, seconds in best.items()),
        tuple(
            line(f"{what}, {unit}", ours, bound, "s", goal, ours <= bound + MORE, digits=2)
            for unit, ours, bound in zip(("processor", "elapsed"), best["ours"], best["bound"], strict=True)
        ),
    )


def _taken(command: Sequence[str]) -> tuple[float, float]:
    """The seconds of processor time of a process and its children, and those that passed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = _children()

    def run() -> None:
        subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, check=True)

    elapsed = timed(run)
    return _children() - before, elapsed


def _children() -> float:
    """The seconds of processor time of all children that have ended."""
    times = os.times()
    return times.children_user + times.children_system
