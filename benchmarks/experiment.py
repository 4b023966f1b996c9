"""The original experiment's parts, side by side in one run: `python -m benchmarks.experiment --help`.

Preprocessing into packs, ResNet50's forward passes, and exact search, each beside what others do it with and beside
its ceiling.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import preprocessing, program, searching
from benchmarks.plots import bars
from benchmarks.program import positive
from benchmarks.report import Result

PACKAGES = ("numpy", "tensorflow", "keras", "faiss-cpu", "scikit-learn", "pillow")

_SECTIONS = ("preprocess", "knn", "features")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures what the arguments (the command line's, if none are given) name, and prints the table."""
    given = program.parse(_parser(), _SECTIONS, arguments)
    rows, surroundings = program.run(given, lambda name: _measure(name, given), PACKAGES)
    if given.plot:
        given.plot.write_text(bars(rows, surroundings))
    return 0


def _measure(name: str, given: argparse.Namespace) -> Result:
    if name == "preprocess":
        return preprocessing.measure(given.rounds)
    if name == "knn":
        return searching.measure(given.pictures, given.rounds, not given.without_sklearn)
    from benchmarks import forwards  # noqa: PLC0415  TensorFlow takes seconds, and memory that the others need

    return forwards.measure(given.forwards, given.rounds)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.experiment",
        description="Measures preprocessing, forward passes and exact search beside others and beside their ceilings.",
    )
    parser.add_argument("--rounds", type=positive, default=3, metavar="N", help="rounds of each measurement")
    parser.add_argument(
        "--pictures",
        type=_hundreds,
        default=30_000,
        metavar="N",
        help="vectors, a tenth of them queries: 1,000 to 100,000, the original's size",
    )
    parser.add_argument("--forwards", type=positive, default=512, metavar="N", help="pictures of the forward passes")
    parser.add_argument("--without-sklearn", action="store_true", help="leave out scikit-learn, the slowest by far")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write a plot of the rates (SVG) to a file, too")
    return parser


def _hundreds(text: str) -> int:
    if not text.isdecimal() or not 1_000 <= int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1,000 to 1,000,000")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
