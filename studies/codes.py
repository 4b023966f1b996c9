"""Searches of a large library by the codes of its index, beside exact ones: `python -m studies.codes --help`.

The index is made, and opened as the service opens it; one question at a time, by the vector of a library picture.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.kit import program, segments
from benchmarks.kit.madeindex import DIMENSION, SEGMENTS, MadeIndex
from benchmarks.kit.program import positive
from benchmarks.kit.report import Line, Result, Row, line, timed
from benchmarks.kit.trees import status_mib
from stages.files.segment_files import read_points
from stages.knn import code_index
from stages.knn.search_settings import ALGORITHMS, SearchSettings
from stages.knn.searcher_factory import open_searcher
from stages.knn.vector_set import VectorSet
from stages.serving.search.mapped_library import MappedLibrary
from stages.serving.search.mapped_segment import map_segment
from stages.serving.search.search_engine import SearchEngine, SearchResult as Found

PACKAGES = ("numpy", "faiss", "onnxruntime")

_NEAR, _K = 3, 10
"""Neighbours: those that the specifications ask for, and those that the index measures."""

_GOAL = 0.99
_QUESTIONS = 200


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures a library of the size that the arguments (the command line's by default) name, and prints the table."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.codes", description="Measures searches by codes beside exact ones."
    )
    parser.add_argument("--pictures", type=positive, default=1_000_000, metavar="N", help="size of the library")
    parser.add_argument("--algorithm", choices=ALGORITHMS[1:], default="ivfflat", help="of the codes")
    given = program.parse(parser, (), arguments)
    given.sections = [f"{given.pictures:,} pictures, {given.algorithm}"]
    program.exit_on_sigterm()
    program.run(given, lambda name: measure(name, given.pictures, given.algorithm), PACKAGES, beside="exact")
    return 0


@dataclass(frozen=True, slots=True)
class _Written:
    seconds: float
    bytes: int


def measure(name: str, pictures: int, algorithm: str) -> Result:
    """Writes an index with codes, and asks it for the neighbours of some of its pictures in both ways."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        written = [_segment(MadeIndex(pictures), Path(scratch), each, algorithm) for each in SEGMENTS]
        opened = [map_segment(Path(scratch, each), each, read_points) for each in SEGMENTS]
        library = MappedLibrary(opened, lambda *_: b"")  # nobody asks for thumbnails
        searching = SearchEngine(library, SearchSettings(), {})
        searching.prepared()
        rows = np.random.default_rng(0).integers(len(library), size=_QUESTIONS).tolist()
        exact, exact_times = _asked(searching, library, rows, exact=True)
        coded, coded_times = _asked(searching, library, rows, exact=False)
        searching.close()
    near, all_ = (_recall(exact, coded, k) for k in (_NEAR, _K))
    stated = coded[0].recall or 0.0
    spent, size = sum(each.seconds for each in written), sum(each.bytes for each in written)
    middle, middle_exact = (1000 * statistics.median(each) for each in (coded_times, exact_times))
    late, late_exact = (1000 * statistics.quantiles(each, n=20)[-1] for each in (coded_times, exact_times))
    lines = (
        line("one question: median", middle, middle_exact, "ms"),
        line("one question: 95th percentile", late, late_exact, "ms"),
        line("one exact question: 95th percentile", late_exact, None, "ms", "60 ms", late_exact < 60),
        Line(
            f"recall@{_NEAR}, of these questions", f"{near:.4f}", goal=f"{_GOAL}", met="yes" if near >= _GOAL else "no"
        ),
        Line(f"recall@{_K}, of these questions", f"{all_:.4f}", f"{stated:.4f} stated"),
        line("codes", size / 2**20, pictures * DIMENSION * 4 / 2**20, "MiB"),
        line("writing them, one thread, with their recall", spent, None, "s"),
        line("memory of this process", status_mib("self", "VmRSS"), None, "MiB"),
    )
    rows_ = (Row(name, "codes", late / 1000), Row(name, "exact", late_exact / 1000), Row(name, "written", spent))
    return Result(rows_, lines)


def _recall(exact: Sequence[Found], coded: Sequence[Found], k: int) -> float:
    """The share of the k nearest that the codes find, without the picture itself, which every answer begins with."""
    rows = [
        (one.topk.rows[0, 1 : k + 1], other.topk.rows[0, 1 : k + 1]) for one, other in zip(exact, coded, strict=True)
    ]
    return float(np.mean([np.isin(true, found).mean() for true, found in rows]))


def _segment(index: MadeIndex, root: Path, segment: str, algorithm: str) -> _Written:
    """Writes a segment, and its codes as the stage index does."""
    print(f"  segment {segment} ...", file=sys.stderr, flush=True)
    place = index.write(root, segment)
    library = VectorSet(segments.vectors(place))
    exact = open_searcher(library, SearchSettings(), {}, lambda _: None)
    found: list[code_index.CodeFacts | None] = []
    seconds = timed(lambda: found.append(code_index.write(library, algorithm, exact, place / code_index.FILE)))
    facts = json.loads((place / "index.json").read_text())
    if found[0] is not None:
        facts["codes"] = found[0].as_data()
    (place / "index.json").write_text(json.dumps(facts))
    return _Written(seconds, (place / code_index.FILE).stat().st_size if found[0] is not None else 0)


def _asked(
    searching: SearchEngine, library: MappedLibrary, rows: Sequence[int], exact: bool
) -> tuple[list[Found], list[float]]:
    found: list[Found] = []
    times = []
    for row in rows:
        point = library.vectors(np.array([row]))
        times.append(timed(lambda point=point, row=row: found.append(  # type: ignore[misc]
            searching.search(point, _K + 1, known=[row], exact=exact)
        )))  # fmt: skip
    return found, times


if __name__ == "__main__":
    sys.exit(main())
