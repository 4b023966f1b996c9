"""The original experiment's parts, side by side in one run: `python -m benchmarks.experiment --help`.

Preprocessing into packs, ResNet50's forward passes, and exact search, each beside what others do it with and beside
its ceiling.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import preprocessing, report, searching
from benchmarks.plots import bars
from benchmarks.report import Result

PACKAGES = ("numpy", "tensorflow", "keras", "faiss-cpu", "scikit-learn", "pillow")

_SECTIONS = ("preprocess", "knn", "features")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures what the arguments (the command line's, if none are given) name, and prints the table."""
    parser = _parser()
    given = parser.parse_args(arguments)
    for unknown in sorted({*given.sections} - {*_SECTIONS}):
        parser.error(f"{unknown} is none of {', '.join(_SECTIONS)}")
    surroundings, used, code = report.machine(), report.versions(PACKAGES), report.commit()
    results = []
    for name in given.sections or _SECTIONS:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        results.append(_measure(name, given))
    lines = [line for result in results for line in result.lines]
    rows = [row for result in results for row in result.rows]
    print(report.markdown(lines, surroundings, used, code) if given.markdown else report.plain(lines))
    if given.plot:
        given.plot.write_text(bars(rows, surroundings))
    if given.json:
        report.write_json(given.json, rows, surroundings, used, code)
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
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"{', '.join(_SECTIONS)}; without any, all")
    parser.add_argument("--rounds", type=_positive, default=3, metavar="N", help="rounds of each measurement")
    parser.add_argument(
        "--pictures",
        type=_hundreds,
        default=30_000,
        metavar="N",
        help="vectors, a tenth of them queries: 1,000 to 100,000, the original's size",
    )
    parser.add_argument("--forwards", type=_positive, default=512, metavar="N", help="pictures of the forward passes")
    parser.add_argument("--without-sklearn", action="store_true", help="leave out scikit-learn, the slowest by far")
    parser.add_argument("--markdown", action="store_true", help="print the table as docs/benchmarks.md has it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the measurements to a file, too")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write a plot of the rates (SVG) to a file, too")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return int(text)


def _hundreds(text: str) -> int:
    if not text.isdecimal() or not 1_000 <= int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1,000 to 1,000,000")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
