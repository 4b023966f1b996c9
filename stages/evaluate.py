"""The evaluate stage: the nearest labelled pictures of the labelled pictures of one segment.

Inputs, lazy or not: `labels`, the whole repo; `nearest`, a directory /nearest/<left> of neighbours, with one file for
each segment; `pictures`, the directory /pictures of neighbours. Parameter: K, the most neighbours of a ranking. Writes
/queries/<left>.parquet (Rankings) and, with the first segment, /labels.json: all that was left out of the labels.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.contract
    from stages import contract

    raise SystemExit(contract.run("stages.evaluate"))

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stages.contract import Datum, Input, StageError, spool
from stages.labelling import UNLABELLED, Pictures, first_sources, read_labels, read_pictures
from stages.parameters import integer
from stages.ranking import Side, rank
from stages.tables.nearest import read_nearest
from stages.tables.rankings import Rankings, write_rankings

MOST_NEIGHBOURS = 1000

_AGAIN = "compute it again with `lookalike deploy --reprocess neighbours`"


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Reads K (default 10). Raises StageError if it is not a whole number from 1 to `MOST_NEIGHBOURS`."""
    return Evaluate(integer(environment, "K", 10, 1, MOST_NEIGHBOURS))


class Evaluate:
    """Ranks one segment after the other. Keeps the pictures and labels, which all datums of a commit share."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._held: tuple[tuple[str, str], Pictures] | None = None

    def __call__(self, datum: Datum) -> None:
        pictures = self._pictures(datum.inputs["labels"], datum.inputs["pictures"])
        nearest = datum.inputs["nearest"]
        left = Path(nearest.repo_path).name
        span = pictures.span(left)
        sides = _sides(nearest.path, left, pictures)
        labelled = pictures.codes != UNLABELLED
        queries = np.flatnonzero(labelled[span])
        write(datum.out, left, pictures, queries, sides, self._k)
        print(f"evaluate: {len(queries)} of {span.stop - span.start} pictures of {left} have labels")

    def _pictures(self, labels: Input, pictures: Input) -> Pictures:
        key = (labels.commit, pictures.commit)
        if self._held is None or "" in key or self._held[0] != key:
            self._held = None  # frees the memory first
            self._held = key, _read(labels.path, pictures.path)
        return self._held[1]


def write(out: Path, left: str, pictures: Pictures, queries: npt.NDArray[np.int64], sides: list[Side], k: int) -> None:
    """Writes the rankings of the segment `left` for the queries, which are rows in it."""
    found = rank(sides, queries, pictures.codes != UNLABELLED, k)
    valid = np.arange(k) < found.depths[:, None]
    table = pictures.tables[left]
    paths = table["sources"].combine_chunks().flatten().field("path")
    rows = queries + pictures.span(left).start
    rankings = Rankings(
        rows=rows.astype(np.int32),
        ids=table["id"].take(queries).to_pylist(),
        sources=paths.take(first_sources(table)[queries]).to_pylist(),
        labels=[pictures.names[code] for code in pictures.codes[rows].tolist()],
        skipped=found.skipped,
        depths=found.depths.astype(np.int64),
        neighbours=found.rows[valid],
        distances=found.distances[valid],
        facts={**pictures.facts, "k": str(k)},
    )
    (out / "queries").mkdir(parents=True, exist_ok=True)
    write_rankings(rankings, out / "queries" / f"{left}.parquet")
    if left == pictures.segments[0]:
        told = {"pictures": len(pictures), "labelled": int((pictures.codes != UNLABELLED).sum()), **pictures.left_out}
        (out / "labels.json").write_text(json.dumps(told, indent=1, sort_keys=True) + "\n", encoding="ascii")


def _read(labels: Path, pictures: Path) -> Pictures:
    with tempfile.TemporaryDirectory(prefix="lookalike-") as directory:
        into = Path(directory)
        return read_pictures(_spooled(pictures, into), read_labels(labels, into))


def _spooled(pictures: Path, into: Path) -> list[Path]:
    """The tables, which keep their names: a copy of a pipe would have none."""
    found = []
    for path in sorted(pictures.glob("*.parquet")):
        copy = spool(path, into)
        found.append(copy if copy == path else copy.rename(into / path.name))
    return found


def _sides(nearest: Path, left: str, pictures: Pictures) -> list[Side]:
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
        sides.append(Side(found, int(there.start), int(others)))
    return sides
