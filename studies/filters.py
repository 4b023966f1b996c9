"""Searches of a large library within a filter that keeps few pictures, beside FAISS and LanceDB:
`python -m studies.filters --help`.

The index is made, and opened as the service opens it; one question at a time, by the vector of a library picture. A
filter by what people say keeps one picture in a hundred. FAISS's flat index gets the same pictures as a selector, and
LanceDB the same filter, before its search, without an index and with one. The recall is against brute force in float64.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.kit import program
from benchmarks.kit.madeindex import DIMENSION, SEGMENTS, MadeIndex
from benchmarks.kit.program import positive
from benchmarks.kit.report import Line, Result, Row, line, timed
from benchmarks.kit.trees import status_mib
from stages.files.segment_files import read_points
from stages.files.tables import annotation_table
from stages.files.tables.index_table import TABLE, IndexTable
from stages.filters.where_clause import parse_where
from stages.knn.search_settings import SearchSettings
from stages.serving.search.mapped_library import MappedLibrary
from stages.serving.search.mapped_segment import map_segment
from stages.serving.search.search_engine import SearchEngine

PACKAGES = ("numpy", "faiss", "onnxruntime", "pyarrow", "sqlglot")

_K, _LABELS = 10, 100
_WHERE = "label = 'kind 7'"
_GOAL = 60.0
_FAISS: Any = faiss
_LANCE = Path(__file__).parent / "setups" / "lance.py"

Found = Sequence[Sequence[int]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures a library of the size that the arguments (the command line's by default) name, and prints the table."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.filters", description="Measures searches within a filter beside FAISS and LanceDB."
    )
    parser.add_argument("--pictures", type=positive, default=1_000_000, metavar="N", help="size of the library")
    parser.add_argument("--questions", type=positive, default=100, metavar="N", help="one after the other")
    parser.add_argument("--lance", default="", metavar="PYTHON", help="of an environment with lancedb; none by default")
    given = program.parse(parser, (), arguments)
    given.sections = [f"{given.pictures:,} pictures, {_WHERE}"]
    program.exit_on_sigterm()
    program.run(
        given, lambda name: measure(name, given.pictures, given.questions, given.lance), PACKAGES, beside="FAISS"
    )
    return 0


def measure(name: str, pictures: int, questions: int, lance: str) -> Result:
    """Writes an index with annotations, and asks it and the others for the nearest within a filter."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        for each in SEGMENTS:
            print(f"  segment {each} ...", file=sys.stderr, flush=True)
            _annotated(MadeIndex(pictures).write(Path(scratch), each))
        library = MappedLibrary(
            [map_segment(Path(scratch, each), each, read_points) for each in SEGMENTS], lambda *_: b""
        )
        table = library.attributes.table

        def filtered() -> Any:
            return table.pictures_of(parse_where(_WHERE, table.columns).files(table))

        first = timed(filtered)
        again = statistics.median(timed(filtered) for _ in range(5))
        within = filtered()
        rows = np.random.default_rng(0).integers(len(library), size=questions)
        points = library.vectors(rows)
        kept = np.flatnonzero(within)
        truth = _brute(library.vectors(kept), kept, points)
        engine = SearchEngine(library, SearchSettings(), {})
        engine.prepared()
        ours, times = _asked(points, lambda point: engine.search(point, _K, within=within).topk.rows[0].tolist())
        engine.close()
        others = {"FAISS": _faiss(library, within, points)}
        if lance:
            others |= _lance(lance, Path(scratch), library, points)
    late = _late(times)
    middle, middle_faiss = (1000 * statistics.median(each) for each in (times, others["FAISS"][1]))
    lines = [
        line("the filter, first and again", 1000 * first, 1000 * again, "ms"),
        line("one question: median", middle, middle_faiss, "ms"),
        line("one question: 95th percentile", late, _late(others["FAISS"][1]), "ms", f"{_GOAL:g} ms", late < _GOAL),
        Line(f"recall@{_K}", f"{_recall(truth, ours):.4f}", f"{_recall(truth, others['FAISS'][0]):.4f}"),
        *(
            Line(f"{other}: median, 95th percentile, recall@{_K}", _words(truth, *answered))
            for other, answered in others.items()
        ),
        line("memory of this process", status_mib("self", "VmRSS"), None, "MiB"),
    ]
    found = [Row(name, "lookalike", late / 1000)]
    return Result(
        (*found, *(Row(name, other, _late(each) / 1000) for other, (_, each) in others.items())), tuple(lines)
    )


def _annotated(segment: Path) -> None:
    """Writes what people say of a segment's files: one of a hundred labels each."""
    paths = [each.path for sources in IndexTable.read(segment / TABLE).sources for each in sources]
    labels = [f"kind {number}" for number in np.random.default_rng(1).integers(_LABELS, size=len(paths))]
    annotation_table.write_annotations(pa.table({"path": paths, "label": labels}), segment / annotation_table.FILE)


def _brute(vectors: NDArray[np.float32], rows: NDArray[np.int64], points: NDArray[np.float32]) -> Found:
    found = []
    for point in points.astype(np.float64):
        distances = ((vectors.astype(np.float64) - point) ** 2).sum(axis=1)
        found.append(rows[np.lexsort((rows, distances))[:_K]].tolist())
    return found


def _asked(points: NDArray[np.float32], ask: Callable[[NDArray[np.float32]], list[int]]) -> tuple[Found, list[float]]:
    found: list[list[int]] = []
    ask(points[:1])
    return found, [timed(lambda at=at: found.append(ask(points[at : at + 1]))) for at in range(len(points))]  # type: ignore[misc]


def _faiss(library: MappedLibrary, within: NDArray[np.bool_], points: NDArray[np.float32]) -> tuple[Found, list[float]]:
    index = _FAISS.IndexFlatL2(DIMENSION)
    for each in library.segments:
        index.add(np.ascontiguousarray(each.vectors))
    bits = np.packbits(within, bitorder="little")
    chosen = _FAISS.SearchParameters(sel=_FAISS.IDSelectorBitmap(bits))
    return _asked(points, lambda point: index.search(point, _K, params=chosen)[1][0].tolist())


def _lance(
    python: str, scratch: Path, library: MappedLibrary, points: NDArray[np.float32]
) -> dict[str, tuple[Found, list[float]]]:
    """The answers of LanceDB, in a process of its own."""
    given = scratch / "lance"
    given.mkdir()
    np.save(given / "points.npy", points)
    labels = library.attributes.table.column("label").dictionary_decode().to_pylist()
    (given / "labels.json").write_text(json.dumps(labels))
    for each in library.segments:
        np.save(given / f"part-{each.name}.npy", each.vectors)
    command = [python, str(_LANCE), str(given), _WHERE, str(_K)]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {name: (found, times) for name, (found, times) in json.loads(said).items()}


def _late(times: Sequence[float]) -> float:
    return 1000 * statistics.quantiles(times, n=20)[-1]


def _recall(truth: Found, found: Found) -> float:
    return float(np.mean([np.isin(one, other).mean() for one, other in zip(truth, found, strict=True)]))


def _words(truth: Found, found: Found, times: Sequence[float]) -> str:
    return f"{1000 * statistics.median(times):.1f} ms, {_late(times):.1f} ms, {_recall(truth, found):.4f}"


if __name__ == "__main__":
    sys.exit(main())
