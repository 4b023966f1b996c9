"""The speed of the GPU stages: `python -m benchmarks.gpu --help`. Needs a GPU, and measures whichever of these are
installed: cuML, CuPy, PyTorch, Keras, and the dependencies of lookalike's own stages."""

import argparse
import importlib.metadata
import importlib.util
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks import arrays, embedding, knn, program
from benchmarks.arrays import Arrays, XpArrays
from benchmarks.report import Result

_PACKAGES = frozenset(
    {
        "cuml-cu12",
        "cuml-cu13",
        "cupy-cuda12x",
        "cupy-cuda13x",
        "faiss-cpu",
        "keras",
        "scikit-learn",
        "tensorflow",
        "torch",
    }
)

_Section = Callable[[argparse.Namespace, list[Arrays]], Result]


def _embedding(given: argparse.Namespace, _devices: list[Arrays]) -> Result:
    if importlib.util.find_spec("keras") is None:
        print("Keras is not installed: ResNet50 is not measured", file=sys.stderr)
        return Result((), ())
    return embedding.measure(given.pictures, given.rounds, tuple(given.sides))


_SECTIONS: dict[str, _Section] = {
    "knn": lambda given, devices: knn.measure(_size(given), devices, given.rounds),
    "certificate": lambda given, _devices: knn.measure_certificate(_size(given)),
    "embedding": _embedding,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures the sections that the arguments (the command line's by default) name; 1 without a GPU."""
    given = program.parse(_parser(), tuple(_SECTIONS), arguments)
    gpu = {} if given.cpu else _gpu()
    if not gpu and not given.cpu:
        print(
            "benchmarks.gpu: no NVIDIA GPU here (nvidia-smi finds none), so there is nothing to measure; "
            "--cpu tries the benchmark on the CPU, with small numbers (--queries, --library, --pictures)",
            file=sys.stderr,
        )
        return 1
    devices: list[Arrays] = [XpArrays("numpy")] if given.cpu else arrays.on_gpu()
    program.run(given, lambda name: _SECTIONS[name](given, devices), _installed(), gpu)
    return 0


def _gpu() -> dict[str, Any]:
    """The first GPU's name, memory and driver, according to nvidia-smi; empty without a GPU."""
    question = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(question, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {}
    name, memory, driver = (part.strip() for part in answer.splitlines()[0].split(","))
    return {"gpu": name, "gpu_memory_mib": int(memory), "driver": driver}


def _installed() -> list[str]:
    return sorted(_PACKAGES & {each.metadata["Name"].lower() for each in importlib.metadata.distributions()})


def _size(given: argparse.Namespace) -> knn.Size:
    return knn.Size(given.queries, given.library, given.dimension)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu",
        description="Measures search and embedding on a GPU beside bare lower bounds and the article's figures.",
    )
    full = knn.FULL
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="rounds of each measurement")
    parser.add_argument("--queries", type=int, default=full.queries, metavar="N", help="vectors to search for")
    parser.add_argument("--library", type=int, default=full.library, metavar="N", help="vectors to search")
    parser.add_argument("--dimension", type=int, default=full.dimension, metavar="N", help="numbers in a vector")
    parser.add_argument("--pictures", type=int, default=4096, metavar="N", help="pictures to embed")
    parser.add_argument(
        "--sides", type=int, nargs="+", default=embedding.SIZES, metavar="N", help="sizes of the pictures"
    )
    parser.add_argument("--cpu", action="store_true", help="try the benchmark without a GPU")
    return parser


if __name__ == "__main__":
    sys.exit(main())
