"""The index stage: one segment's table, its vectors and thumbnails, which it passes on unread, and on request codes for
an approximate search.

Runs as `python -m stages.index`, under Pachyderm or on plain directories. Knows neither models nor queries.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.index"))

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from stages.datum.contract import Datum, DatumInput, StageError
from stages.files import thumbnail_files, vector_files
from stages.files.merged_tables import MergedTable, read_segment
from stages.files.segment_files import SegmentFacts
from stages.files.tables import annotation_table
from stages.files.tables.index_table import TABLE, IndexTable, placed
from stages.knn import code_index
from stages.knn.code_index import CodeFacts
from stages.knn.search_settings import SearchSettings, read_settings
from stages.knn.searcher_factory import open_searcher
from stages.knn.vector_set import VectorSet

VERSION = 16
"""Version of the stage's output, equal to LOOKALIKE_STAGE in its specifications. See CONTRIBUTING.md."""


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Reads METRIC, BACKEND and ALGORITHM; returns the function that indexes the segment of one datum.

    The datum's inputs: `features`, the directory /library/<b> of partition: for each bucket of parts <bucket>.parquet;
    `vector_files`, the directory /vectors/<b>: for each bucket <bucket>.npy, float32 (n, d), which are read for codes
    alone; `thumbnails`, the directory /thumbnails/<b>: for each bucket <bucket>.thumbnails, of which nothing is read;
    `annotations`, the file /annotations/<b>.parquet of annotations, or no such input.
    Writes /<b>/images.parquet (stages.files.tables.index_table), sorted by id, and in the same order hashes.npy, uint64
    (N,); index.json; with an approximate ALGORITHM also codes.bin, if the segment is large enough; and passes on
    /<b>/vectors/<bucket>.npy, /<b>/thumbnails/<bucket>.thumbnails and /<b>/annotations.parquet. BACKEND searches
    exactly for the recall of the codes, and for nothing else.
    """
    chosen = read_settings(environment)

    def process(datum: Datum) -> None:
        datum.require("index needs /library/<segment> of partition", "features")
        features = datum.inputs["features"]
        target = datum.out / Path(features.repo_path).name
        segment = read_segment(features.path)
        buckets = sorted({place.part for place in segment.thumbnails})
        for files in (vector_files, thumbnail_files):
            _pass_on(datum, segment.name, files.DIRECTORY, [f"{each}{files.SUFFIX}" for each in buckets], target)
        if "annotations" in datum.inputs:
            datum.pass_on(datum.inputs["annotations"].path, target / annotation_table.FILE)
        _index(segment, datum, target, chosen, environment)

    return process


def _pass_on(datum: Datum, segment: str, kind: str, names: Sequence[str], target: Path) -> None:
    """Gives the segment its files of vectors or thumbnails, without reading them."""
    given = datum.inputs.get(kind)
    if given is None:
        raise StageError(
            f"segment {segment} has no {kind}: index also needs /{kind}/<segment> of partition; if an older "
            "version of lookalike wrote the specifications: lookalike upgrade; if not: lookalike deploy --reprocess "
            "partition"
        )
    for name in names:
        file = given.path / name
        if not file.exists():
            raise StageError(
                f"segment {segment} has no {kind} of bucket {file.stem}; reprocess the partition pipeline, which "
                "writes both: lookalike deploy --reprocess partition"
            )
        datum.pass_on(file, target / kind / name)


def _index(
    segment: MergedTable, datum: Datum, target: Path, chosen: SearchSettings, environment: Mapping[str, str]
) -> None:
    images = segment.images
    target.mkdir(parents=True, exist_ok=True)
    table = IndexTable.of(images, **placed(segment.thumbnails), vector_rows=segment.vectors.rows)
    table.write(target / TABLE)
    np.save(target / "hashes.npy", images.hashes)
    facts = SegmentFacts(len(images), chosen.metric, images.origin)
    if chosen.algorithm != "exact":
        coded = _coded(segment, datum.inputs["vectors"], target / code_index.FILE, chosen, environment)
        facts = replace(facts, codes=coded)
    (target / "index.json").write_text(json.dumps(facts.as_data(), sort_keys=True) + "\n", encoding="ascii")
    print(f"index: segment {target.name}: {len(images)} pictures")


def _coded(
    segment: MergedTable, given: DatumInput, path: Path, chosen: SearchSettings, environment: Mapping[str, str]
) -> CodeFacts | None:
    """Writes the codes of an approximate algorithm; None for a segment that is too small."""
    together = segment.vectors.together(given.path, segment.images.origin.dimension, "partition")
    library = VectorSet(together, chosen.metric, segment.images.ids)
    exact = open_searcher(library, chosen, environment)
    return code_index.write(library, chosen.algorithm, exact, path)
