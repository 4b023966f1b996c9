"""The whole pipeline, from pictures to sheets, at several sizes: `python -m benchmarks.pipeline --help`.

Each size has a localpachd of its own, with the specifications of the original experiment.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import figures, program, whole
from benchmarks.backbones import RESNET50, Backbone, random_resnet50
from benchmarks.changes import CHANGES
from benchmarks.plots import curves
from benchmarks.program import positive
from benchmarks.report import Result
from benchmarks.whole import SWAP, Whole
from pipelines.errors import LookalikeError

PACKAGES = ("numpy", "tensorflow", "keras", "grpcio", "protobuf", "python-pachyderm")
BACKBONES = (RESNET50, "efficientnet-lite0")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures the sizes that the arguments (the command line's by default) name, and prints the table."""
    given = program.parse(_parser(), (), arguments)
    sizes = {f"{size:,} pictures": size for size in sorted(set(given.pictures))}
    given.sections = list(sizes)
    program.exit_on_sigterm()
    done: dict[int, Whole] = {}
    try:
        _check_room(max(sizes.values()))
        with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
            print("making the backbones ...", file=sys.stderr, flush=True)
            other = given.other or next(each for each in BACKBONES if each != given.model)
            backbone = _make(given.model, Path(scratch) / "first")
            swapped = _make(other, Path(scratch) / "other") if SWAP in given.changes else backbone

            def measure(name: str) -> Result:
                done[sizes[name]] = whole.measure(sizes[name], backbone, swapped, given.changes)
                return figures.result(done)

            _, surroundings = program.run(given, measure, PACKAGES)
    except (LookalikeError, RuntimeError) as error:
        print(f"benchmarks.pipeline: {error}", file=sys.stderr)
        return 1
    if given.plot:
        given.plot.write_text(curves(figures.panels(done), surroundings))
    return 0


def _make(source: str, directory: Path) -> Path:
    """Makes a backbone in a new directory and returns the directory. Raises LookalikeError or RuntimeError if it
    cannot."""
    backbone = random_resnet50(directory.parent) if source == RESNET50 else Backbone(source)
    backbone.write(directory)
    return directory


def _check_room(pictures: int) -> None:
    """Raises RuntimeError unless the disk has room for a run."""
    place = tempfile.gettempdir()
    wanted, free = whole.room(pictures), shutil.disk_usage(place).free
    if free < wanted:
        raise RuntimeError(
            f"{pictures:,} pictures need {wanted / 1e9:,.1f} GB in {place}, where {free / 1e9:,.1f} GB are free: free "
            "some, name another place in TMPDIR, or give smaller --pictures"
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pipeline",
        description="Measures the whole pipeline on localpachd: libraries of several sizes, changes of them, storage.",
    )
    sizes = "sizes of the libraries, a tenth of each queries; at least 60"
    parser.add_argument("--pictures", type=_sixty, nargs="+", default=[1_000, 3_000], metavar="N", help=sizes)
    named = f"{' or '.join(BACKBONES)}, or a .keras file; {RESNET50} gets random weights"
    parser.add_argument("--model", default=BACKBONES[0], metavar="NAME|FILE", help=named)
    parser.add_argument(
        "--other", metavar="NAME|FILE", help="the backbone to swap it with; by default another named one"
    )
    changes = (*CHANGES, SWAP)
    parser.add_argument("--changes", nargs="*", choices=changes, default=changes, help="which changes to make")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also write a plot of time and bytes (SVG) to a file")
    return parser


def _sixty(text: str) -> int:
    number = positive(text)
    if number < 60:
        raise argparse.ArgumentTypeError(f"{text} is too few: at least 60")
    return number


if __name__ == "__main__":
    sys.exit(main())
