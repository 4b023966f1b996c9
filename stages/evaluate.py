"""The evaluate stage: the nearest labelled pictures of all labelled pictures, as measures, a calibration and a report.

Inputs, lazy or not: `labels`, the whole repo; `index`, the whole index, of which the tables are read, and the vectors
of segments with labelled pictures. Parameters: K, the most neighbours of a ranking; METRIC, unless the index states
the right one. Writes /metrics.json, /calibration.json, /queries.parquet (Rankings of all labelled pictures,
whose neighbours are rows of the same table) and /index.html.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.evaluate"))

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from stages.datum.contract import Datum, DatumInput, StageError
from stages.datum.stage_parameters import integer, one_of
from stages.files import segment_files
from stages.files.tables.columns import ListColumn, SourceColumn, taken
from stages.files.tables.parquet import true_text
from stages.files.tables.ranking_table import RankingTable
from stages.knn.exact_searcher import ExactSearcher
from stages.knn.numpy_backend import NumpyBackend
from stages.knn.search_settings import METRICS, SearchSettings
from stages.knn.top_k import TopK
from stages.knn.vector_set import VectorSet
from stages.quality import evaluation, ranking_verdicts
from stages.quality.picture_labels import LibraryLabels, first_sources, read_labels, read_pictures
from stages.quality.ranking import LabelledVectors, depths, rank
from stages.report.evaluation_page import page

VERSION = 4
"""Version of the stage's output, equal to LOOKALIKE_STAGE in its specifications. See CONTRIBUTING.md."""

MOST_NEIGHBOURS = 1000


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Reads K (default 10) and METRIC (default: the index's). Raises StageError if K is not a whole number from 1 to
    `MOST_NEIGHBOURS`, and for an unknown METRIC."""
    k = integer(environment, "K", 10, 1, MOST_NEIGHBOURS)
    stated = one_of(environment, "METRIC", METRICS) if environment.get("METRIC") else ""

    def process(datum: Datum) -> None:
        datum.require("evaluate reads the index: bring the pipelines to this version with `lookalike upgrade`", "index")
        segments = {segment_files.name_of(each): each for each in segment_files.segments(datum.inputs["index"])}
        if not segments:
            raise StageError(f"the index has no pictures. {segment_files.WAIT}")
        facts = [segment_files.read_facts(each) for each in segments.values()]
        for each, other in zip(facts, segments, strict=True):
            if mismatch := facts[0].origin.mismatch(each.origin, f"segment {next(iter(segments))}", f"segment {other}"):
                raise StageError(f"{mismatch} {segment_files.WAIT}")
        metric = stated or facts[0].metric
        labels = read_labels(datum.inputs["labels"].path)
        pictures = read_pictures({name: segment_files.read_table(each) for name, each in segments.items()}, labels)
        rankings = rankings_of(pictures, segments, SearchSettings(k, metric))
        left_out = {"pictures": len(pictures), "labelled": len(rankings.rows), **pictures.left_out}
        metrics = write(rankings, left_out, datum.out)
        print(f"evaluate: {metrics['queries']} queries of {metrics['labels']} labels")

    return process


def rankings_of(
    pictures: LibraryLabels,
    segments: Mapping[str, DatumInput],
    settings: SearchSettings,
) -> RankingTable:
    """The rankings of all labelled pictures among each other, from the segments of the index by name."""
    labelled = dict(_labelled(pictures, segments, settings.metric))
    found = rank(labelled, settings.k, lambda points: ExactSearcher(points, NumpyBackend(points.prepared)))
    firsts = accumulate((len(pictures.labelled(name)) for name in segments), initial=0)
    parts = zip(segments, firsts, strict=False)
    return RankingTable.joined([_part(found.get(name), pictures, name, first, settings) for name, first in parts])


def _labelled(
    pictures: LibraryLabels, segments: Mapping[str, DatumInput], metric: str
) -> Iterator[tuple[str, LabelledVectors]]:
    """The labelled pictures of each segment that has some."""
    start = 0
    for name, index in segments.items():
        if len(rows := pictures.labelled(name)):
            table = pictures.tables[name]
            vectors = segment_files.read_points(index, table.vectors.of(rows.tolist()), table.origin.dimension)
            yield name, LabelledVectors(VectorSet(vectors, metric, taken(table.ids, rows)), start)
        start += len(rows)


def _part(found: TopK | None, pictures: LibraryLabels, name: str, first: int, settings: SearchSettings) -> RankingTable:
    """The rankings of one segment. found: None if it has no labelled picture. first: the number of its first row."""
    rows, table = pictures.labelled(name), pictures.tables[name]
    found = TopK(np.empty((0, 0), np.float32), np.empty((0, 0), np.int64)) if found is None else found
    counts = depths(found)
    valid = np.arange(found.rows.shape[1]) < counts[:, None]
    sources = SourceColumn.of(table.sources)
    paths = sources.stored_paths.take(first_sources(sources)[rows]).to_pylist()
    return RankingTable(
        rows=np.arange(first, first + len(rows), dtype=np.int32),
        ids=list(taken(table.ids, rows)),
        sources=list(map(true_text, paths)),
        labels=[pictures.names[code] for code in pictures.codes[name][rows].tolist()],
        neighbours=ListColumn.divided(found.rows[valid].astype(np.int32), counts),
        distances=ListColumn.divided(found.distances[valid], counts),
        origin=table.origin,
        metric=settings.metric,
        k=settings.k,
    )


def write(rankings: RankingTable, left_out: Mapping[str, Any], out: Path) -> dict[str, Any]:
    """Writes the files of an evaluation; returns the values of metrics.json. left_out: the numbers of pictures and of
    those with labels, and all that has none, as `evaluation.metrics` takes them. A library without labels, or with too
    few, gives a report that says what to do, never a failure."""
    verdicts = ranking_verdicts.judge(rankings)
    metrics = evaluation.metrics(verdicts, left_out)
    calibration = evaluation.calibrated(verdicts)
    rankings.write(out / "queries.parquet")
    for name, value in (("metrics.json", metrics), ("calibration.json", calibration)):
        (out / name).write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="ascii")
    (out / "index.html").write_text(page(metrics, calibration), encoding="utf-8", newline="\n")
    return metrics
