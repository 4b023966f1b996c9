"""The parts of the original experiment in one run: `python -m studies.experiment --help`.

Preprocessing into packs, features, exact search, and all of it on a small scale from pictures to the sheet, each beside
other programs and beside its ceiling.
"""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.kit import program
from benchmarks.kit.plots import bars
from benchmarks.kit.program import positive
from benchmarks.kit.report import Result
from benchmarks.races import coldstart, features, preprocessing, searching
from benchmarks.races.backbones import Backbone
from pipelines.errors import LookalikeError
from pipelines.library.datasets import stl10
from studies import answering

PACKAGES = ("numpy", "tensorflow", "keras", "onnxruntime", "faiss-cpu", "scikit-learn", "pillow")

_FEWEST, _MOST = 1_000, 100_000

SECTIONS: dict[str, Callable[[argparse.Namespace], Result]] = {
    "preprocess": lambda given: preprocessing.measure(given.rounds),
    "cold": lambda given: coldstart.measure(given.rounds),
    "features": lambda given: features.measure(given.forwards, given.rounds, _backbone(given), given.data_dir),
    "knn": lambda given: searching.measure(given.pictures, given.rounds, not given.without_sklearn, _vectors(given)),
    "sheet": lambda given: answering.measure(
        given.sheet_pictures,
        given.rounds,
        _backbone(given) or answering.OWN,
        given.data_dir,
        given.sheet,
        not given.without_sklearn,
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures the sections that the arguments (the command line's by default) name, and prints the table; 1 if
    something requested is not available."""
    given = program.parse(_parser(), tuple(SECTIONS), arguments)
    program.exit_on_sigterm()
    try:
        rows, surroundings = program.run(given, lambda name: SECTIONS[name](given), PACKAGES)
    except (LookalikeError, RuntimeError) as error:
        print(f"studies.experiment: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    if given.plot:
        given.plot.write_text(bars(rows, surroundings))
    return 0


def _backbone(given: argparse.Namespace) -> Backbone | None:
    """The requested backbone, or None. Weights alone are those of the article's network."""
    asked = given.backbone or (given.weights and "resnet50")
    return Backbone(asked, given.weights) if asked else None


def _vectors(given: argparse.Namespace) -> Path | None:
    """The directory of the vectors to search, written if they are not there yet; None for generated ones."""
    place: Path | None = given.vectors
    if place is not None and not all((place / name).is_file() for name in searching.FILES):
        answering.write_vectors(place, given.pictures, _backbone(given) or answering.OWN, given.data_dir)
    return place


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m studies.experiment",
        description="Measures the stages and exact search beside other programs and beside their ceilings.",
    )
    add = parser.add_argument
    add("--rounds", type=positive, default=3, metavar="N", help="rounds of each measurement")
    vectors = f"knn: generated vectors, a tenth of them queries; {_FEWEST:,} to {_MOST:,}, the original's size"
    add("--pictures", type=_size, default=30_000, metavar="N", help=vectors)
    real = "knn: vectors in place of generated ones (library.npy, queries.npy); those of pictures, if there are none"
    add("--vectors", type=Path, metavar="DIR", help=real)
    add("--forwards", type=positive, default=700, metavar="N", help="features: pictures")
    small = f"sheet: pictures, a tenth of them queries; {_FEWEST:,} to {_MOST:,}"
    add("--sheet-pictures", type=_size, default=2_000, metavar="N", help=small)
    add("--sheet", type=Path, metavar="FILE", help="keep the sheet of five queries and their nearest (PNG)")
    add("--data-dir", type=_data_dir, metavar="DIR", help="STL-10's files, for pictures in place of generated ones")
    named = "as for `lookalike model push`, or a directory made by stages.zoo"
    otherwise = f"by default ResNet50 with random weights, and for sheet and --vectors {answering.OWN.source}"
    add("--backbone", metavar="NAME|FILE|DIR", help=f"{named}; {otherwise}")
    add("--weights", type=Path, metavar="FILE", help="weights of that backbone, or of ResNet50")
    add("--without-sklearn", action="store_true", help="leave out scikit-learn, the slowest by far")
    add("--plot", type=Path, metavar="FILE", help="also write a plot of the rates (SVG) to a file")
    return parser


def _size(text: str) -> int:
    if not text.isdecimal() or not _FEWEST <= int(text) <= _MOST:
        raise argparse.ArgumentTypeError(f"{text} is not a number from {_FEWEST:,} to {_MOST:,}")
    return int(text)


def _data_dir(text: str) -> Path:
    if stl10.find(Path(text)) is None:
        raise argparse.ArgumentTypeError(
            f"{text} holds no extracted files of STL-10: `lookalike add stl10 --data-dir {text}` downloads them"
        )
    return Path(text)


if __name__ == "__main__":
    sys.exit(main())
