"""The evaluate stage: the nearest labelled pictures of all labelled pictures, as measures, a calibration and a report.

Inputs, lazy or not: `labels`, the whole repo; `nearest` and `pictures`, the directories /nearest and /pictures of
neighbours. Parameter: K, the most neighbours of a ranking. Writes /metrics.json, /calibration.json, /queries.parquet
(Rankings of all labelled pictures, whose neighbours are rows of the same table) and /index.html.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.evaluate"))

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.datum.contract import Datum, StageError, spool
from stages.datum.progress import Progress
from stages.datum.stage_parameters import integer
from stages.files.tables.columns import ListColumn, SourceColumn, taken
from stages.files.tables.nearest_table import read_nearest
from stages.files.tables.parquet import true_text
from stages.files.tables.ranking_table import RankingTable
from stages.quality import evaluation, ranking_verdicts
from stages.quality.picture_labels import UNLABELLED, LibraryLabels, first_sources, read_labels, read_pictures
from stages.quality.ranking import Ranking, SegmentNeighbours, rank
from stages.report.evaluation_page import page

VERSION = 4
"""Version of the stage's output, equal to LOOKALIKE_STAGE in its specifications. See CONTRIBUTING.md."""

MOST_NEIGHBOURS = 1000

_AGAIN = "compute it again with `lookalike deploy --reprocess neighbours`"


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Reads K (default 10). Raises StageError if it is not a whole number from 1 to `MOST_NEIGHBOURS`."""
    k = integer(environment, "K", 10, 1, MOST_NEIGHBOURS)

    def process(datum: Datum) -> None:
        nearest = datum.inputs["nearest"]
        if "/" in nearest.repo_path:  # each segment was a datum of its own
            raise StageError(
                f"the input nearest is /{nearest.repo_path}, one segment, as an earlier lookalike deployed it: bring "
                "the pipelines to this version with `lookalike upgrade`"
            )
        pictures = _read(datum.inputs["labels"].path, datum.inputs["pictures"].path)
        rankings = rankings_of(pictures, nearest.path, k)
        left_out = {"pictures": len(pictures), "labelled": len(rankings.rows), **pictures.left_out}
        metrics = write(rankings, left_out, datum.out)
        print(f"evaluate: {metrics['queries']} queries of {metrics['labels']} labels")

    return process


def rankings_of(pictures: LibraryLabels, nearest: Path, k: int) -> RankingTable:
    """The rankings of all labelled pictures, from the directory /nearest of neighbours. The nearest of one segment are
    in memory at a time. Raises StageError if some are missing, or are those of other pictures."""
    labelled = pictures.codes != UNLABELLED
    numbers = np.cumsum(labelled, dtype=np.int32) - np.int32(1)
    progress = Progress("pictures", len(pictures))
    parts = []
    for left in pictures.segments:
        span = pictures.span(left)
        queries = np.flatnonzero(labelled[span])
        found = rank(_sides(nearest / left, left, pictures), queries, labelled, k)
        parts.append(_part(found, numbers, queries, pictures, left))
        progress.add(span.stop - span.start)
    if not parts:
        raise StageError(f"neighbours has no pictures: {_AGAIN}")
    return RankingTable.joined(parts)


def _part(
    found: Ranking, numbers: npt.NDArray[np.int32], queries: npt.NDArray[np.int64], pictures: LibraryLabels, left: str
) -> RankingTable:
    """The rankings of one segment. numbers: int32 (n,), of each labelled picture its number among them. queries: rows
    of the segment `left`."""
    valid = np.arange(found.rows.shape[1]) < found.depths[:, None]
    table, rows = pictures.tables[left], pictures.span(left).start + queries
    sources = SourceColumn.of(table.sources)
    paths = sources.stored_paths.take(first_sources(sources)[queries]).to_pylist()
    return RankingTable(
        rows=numbers[rows],
        ids=list(taken(table.ids, queries)),
        sources=list(map(true_text, paths)),
        labels=[pictures.names[code] for code in pictures.codes[rows].tolist()],
        skipped=found.skipped,
        neighbours=ListColumn.divided(numbers[found.rows[valid]], found.depths),
        distances=ListColumn.divided(found.distances[valid], found.depths),
        origin=table.origin,
        metric=table.metric,
        k=found.rows.shape[1],
    )


def _read(labels: Path, pictures: Path) -> LibraryLabels:
    with tempfile.TemporaryDirectory(prefix="lookalike-") as directory:
        into = Path(directory)
        tables = [spool(path, into) for path in sorted(pictures.glob("*.parquet"))]
        return read_pictures(tables, read_labels(labels, into))


def _sides(nearest: Path, left: str, pictures: LibraryLabels) -> list[SegmentNeighbours]:
    """The nearest of the segment `left` in each segment, from its directory."""
    span = pictures.span(left)
    sides = []
    for right in pictures.segments:
        file = nearest / f"{right}.npy"
        there = pictures.span(right)
        others = there.stop - there.start - (right == left)
        if not file.exists():
            raise StageError(f"neighbours has no {left}/{right}.npy: {_AGAIN}")
        with tempfile.TemporaryDirectory(prefix="lookalike-") as directory:
            found = read_nearest(spool(file, Path(directory)))
        if len(found) != span.stop - span.start:
            raise StageError(f"{left}/{right}.npy of neighbours does not fit its pictures: {_AGAIN}")
        sides.append(SegmentNeighbours(found, int(there.start), int(others)))
    return sides


def write(rankings: RankingTable, left_out: Mapping[str, Any], out: Path) -> dict[str, Any]:
    """Writes the files of an evaluation; returns the values of metrics.json. left_out: the numbers of pictures and of
    those with labels, and all that has none, as `evaluation.metrics` takes them. A library without labels, or with too
    few, gives a report that says what to do, never a failure."""
    verdicts = ranking_verdicts.judge(rankings)
    metrics = evaluation.metrics(rankings, verdicts, left_out)
    calibration = evaluation.calibrated(rankings, verdicts)
    rankings.write(out / "queries.parquet")
    for name, value in (("metrics.json", metrics), ("calibration.json", calibration)):
        (out / name).write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="ascii")
    (out / "index.html").write_text(page(metrics, calibration), encoding="utf-8", newline="\n")
    return metrics
