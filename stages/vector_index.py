"""The vector-index stage: a segment of the index once more, with vectors that people have put in place of its own.

Its pictures are those of the segment that have such a vector, so it follows from the live pictures and the repo
`vectors` alone. Only vectors are written: thumbnails and annotations are passed on. It has the form of the index, so
whatever searches that can search it. Runs as `python -m stages.vector_index`, under Pachyderm or on plain directories.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.vector_index"))

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stages.datum.contract import Datum, DatumInput, StageError, spool
from stages.files import segment_files, thumbnail_files, vector_files
from stages.files.segment_files import FACTS, SegmentFacts
from stages.files.tables import annotation_table
from stages.files.tables.columns import ArrowColumn
from stages.files.tables.index_table import TABLE, IndexTable
from stages.files.tables.vector_table import REPO, SUFFIX, VectorTable
from stages.files.vector_files import VectorPlaces
from stages.knn.backend import Rows
from stages.knn.search_settings import read_settings

VERSION = 1
"""Version of the stage's output, equal to LOOKALIKE_STAGE in its specifications. See CONTRIBUTING.md."""

_AGAIN = "put vectors with `lookalike vectors add`, and no file by other means"


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Reads METRIC; returns the function that indexes the segment of one datum.

    The datum's inputs: `index`, the directory /<segment> of index; `vectors`, the directory /library/<digit> of
    vectors, with <batch>.parquet (stages.files.tables.vector_table) and <batch>.npy, float32 (n, d). Both may be lazy.
    Writes of the pictures that have a vector /<segment>/images.parquet, hashes.npy, index.json, and the files
    vectors/<piece>.npy, float32 (m, d), as index does, with its pieces; passes on thumbnails/<piece>.thumbnails and
    annotations.parquet. Writes nothing where no picture has a vector.
    """
    metric = read_settings(environment).metric

    def process(datum: Datum) -> None:
        datum.require(
            "vector-index needs /<segment> of index and /library/<digit> of vectors: correct the glob in the spec",
            *("index", REPO),
        )
        index, given = datum.inputs["index"], datum.inputs[REPO]
        segment = segment_files.name_of(index)
        images, facts = segment_files.read_table(index), segment_files.read_facts(index)
        tables = _tables(given)
        places, rows = _matched(images, tables)
        print(f"vector-index: {len(rows)} of {len(images)} pictures of segment {segment} have a vector")
        if not len(rows):
            return
        held = next(iter(tables.values()))
        origin = replace(facts.origin, model=held.model, backbone=held.backbone, dimension=held.dimension, devices=())
        target = datum.out / segment
        target.mkdir(parents=True, exist_ok=True)
        _write(datum, index, images.part(rows.tolist()), places, given.path, target, held.dimension)
        np.save(target / "hashes.npy", segment_files.read_hashes(index)[rows])
        described = SegmentFacts(len(rows), metric, origin).as_data()
        (target / FACTS).write_text(json.dumps(described, sort_keys=True) + "\n", encoding="ascii")

    return process


def _tables(given: DatumInput) -> dict[str, VectorTable]:
    """The tables by their batches. Raises StageError for those that do not belong together."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        for file in sorted(given.path.glob(f"*{SUFFIX}")):
            found[file.stem] = VectorTable.read(spool(file, Path(scratch)))
    models = {(each.model, each.backbone, each.dimension) for each in found.values()}
    if len(models) > 1:
        named = " and ".join(sorted({each.described for each in found.values()}))
        raise StageError(f"the repo vectors has vectors of {named}: {_AGAIN}")
    return found


def _matched(images: IndexTable, tables: Mapping[str, VectorTable]) -> tuple[VectorPlaces, Rows]:
    """The places of the vectors of m pictures, and the rows of these pictures, int64 (m,), ascending. Raises StageError
    for a picture that two batches have."""
    ids = ArrowColumn.of(images.ids, pa.string()).stored
    numbers, rows = np.full(len(images), -1, np.int64), np.zeros(len(images), np.int64)
    for number, (batch, table) in enumerate(tables.items()):
        known = ArrowColumn.of(table.ids, pa.string()).stored
        found = pc.fill_null(pc.index_in(ids, value_set=known), -1).to_numpy(zero_copy_only=False)
        here = found >= 0
        if twice := np.flatnonzero(here & (numbers >= 0)).tolist():
            raise StageError(f"the picture {images.ids[twice[0]]} has two vectors, one in batch {batch}: {_AGAIN}")
        numbers[here], rows[here] = number, found[here]
    having = np.flatnonzero(numbers >= 0)
    return VectorPlaces([*tables], numbers[having], rows[having]), having


def _write(
    datum: Datum,
    index: DatumInput,
    images: IndexTable,
    places: VectorPlaces,
    vectors: Path,
    target: Path,
    dimension: int,
) -> None:
    """Writes the table and the vectors of pictures, and passes on their thumbnails and annotations."""
    together = places.together(vectors, dimension, REPO)
    (target / vector_files.DIRECTORY).mkdir(exist_ok=True)
    of, rows = np.asarray(images.thumbnail_parts), np.empty(len(images), np.uint32)
    for number in np.unique(of).tolist():
        piece, here = images.parts[number], np.flatnonzero(of == number)
        np.save(target / vector_files.DIRECTORY / f"{piece}{vector_files.SUFFIX}", together[here])
        rows[here] = range(len(here))
        shown = Path(thumbnail_files.DIRECTORY) / f"{piece}{thumbnail_files.SUFFIX}"
        datum.pass_on(index.path / shown, target / shown)
    replace(images, vector_rows=rows).write(target / TABLE)
    if (index.path / annotation_table.FILE).exists():
        datum.pass_on(index.path / annotation_table.FILE, target / annotation_table.FILE)
