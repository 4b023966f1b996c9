"""The stages, each beside other programs and beside its ceiling: `python -m benchmarks.stages --help`.

Preprocessing into packs, the cold start of features, features, and exact search.
"""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.kit import program
from benchmarks.kit.program import positive
from benchmarks.kit.report import Result
from benchmarks.races import coldstart, features, preprocessing, searching
from benchmarks.races.backbones import Backbone
from pipelines.errors import LookalikeError
from pipelines.library.datasets import stl10

PACKAGES = ("numpy", "tensorflow", "keras", "onnxruntime", "faiss-cpu", "scikit-learn", "pillow")

_FEWEST, _MOST = 1_000, 100_000

SECTIONS: dict[str, Callable[[argparse.Namespace], Result]] = {
    "preprocess": lambda given: preprocessing.measure(given.rounds),
    "cold": lambda given: coldstart.measure(given.rounds),
    "features": lambda given: features.measure(given.forwards, given.rounds, backbone(given), given.data_dir),
    "knn": lambda given: searching.measure(given.pictures, given.rounds, not given.without_sklearn, given.vectors),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures the sections that the arguments (the command line's by default) name, and prints the table; 1 if
    something requested is not available."""
    given = program.parse(_parser(), tuple(SECTIONS), arguments)
    program.exit_on_sigterm()
    try:
        program.run(given, lambda name: SECTIONS[name](given), PACKAGES)
    except (LookalikeError, RuntimeError) as error:
        print(f"benchmarks.stages: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


def add_backbone(parser: argparse.ArgumentParser, otherwise: str) -> None:
    """Adds the options that name a backbone; `otherwise` describes the one without them."""
    named = "as for `lookalike model push`, or a directory made by stages.zoo"
    parser.add_argument("--backbone", metavar="NAME|FILE|DIR", help=f"{named}; by default {otherwise}")
    parser.add_argument("--weights", type=Path, metavar="FILE", help="weights of that backbone, or of ResNet50")


def backbone(given: argparse.Namespace) -> Backbone | None:
    """The requested backbone, or None. Weights alone are those of the article's network."""
    asked = given.backbone or (given.weights and "resnet50")
    return Backbone(asked, given.weights) if asked else None


def vectors_of(text: str) -> Path:
    """The option's directory of vectors to search. Raises argparse.ArgumentTypeError if they are not there."""
    place = Path(text)
    if not all((place / name).is_file() for name in searching.FILES):
        raise argparse.ArgumentTypeError(
            f"{text} lacks {' or '.join(searching.FILES)}: `python -m studies.experiment --vectors {text}` writes them"
        )
    return place


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.stages",
        description="Measures the stages and exact search beside other programs and beside their ceilings.",
    )
    add = parser.add_argument
    add("--rounds", type=positive, default=3, metavar="N", help="rounds of each measurement")
    vectors = f"knn: generated vectors, a tenth of them queries; {_FEWEST:,} to {_MOST:,}, the original's size"
    add("--pictures", type=size, default=30_000, metavar="N", help=vectors)
    real = "knn: vectors in place of generated ones (library.npy, queries.npy), as studies.experiment writes them"
    add("--vectors", type=vectors_of, metavar="DIR", help=real)
    add("--forwards", type=positive, default=700, metavar="N", help="features: pictures")
    add("--data-dir", type=data_dir, metavar="DIR", help="STL-10's files, for pictures in place of generated ones")
    add_backbone(parser, "ResNet50 with random weights")
    add("--without-sklearn", action="store_true", help="leave out scikit-learn, the slowest by far")
    return parser


def size(text: str) -> int:
    """Parses an option's number of pictures."""
    if not text.isdecimal() or not _FEWEST <= int(text) <= _MOST:
        raise argparse.ArgumentTypeError(f"{text} is not a number from {_FEWEST:,} to {_MOST:,}")
    return int(text)


def data_dir(text: str) -> Path:
    """The option's directory of STL-10's extracted files. Raises argparse.ArgumentTypeError if they are not there."""
    if stl10.find(Path(text)) is None:
        raise argparse.ArgumentTypeError(
            f"{text} holds no extracted files of STL-10: `lookalike add stl10 --data-dir {text}` downloads them"
        )
    return Path(text)


if __name__ == "__main__":
    sys.exit(main())
