"""The index stage: one segment's table, its vectors and thumbnails, and on request codes for an approximate search.

All of it follows from the segment's pictures alone, and not from the blocks, parts and buckets that they came in. So
vectors and thumbnails lie in files of their own, divided by ids: one more picture changes one file of each.

Runs as `python -m stages.index`, under Pachyderm or on plain directories. Knows neither models nor queries.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.index"))

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np

from stages.datum.contract import Datum, StageError
from stages.files import thumbnail_files, vector_files
from stages.files.merged_tables import MergedTable, read_segment
from stages.files.segment_files import COARSE, FACTS, SegmentFacts
from stages.files.tables import annotation_table
from stages.files.tables.index_table import TABLE, IndexTable, placed
from stages.files.thumbnail_files import ThumbnailFiles, ThumbnailPlace
from stages.knn import coarse_rows, code_index
from stages.knn.backend import Vectors
from stages.knn.code_index import CodeFacts
from stages.knn.search_settings import SearchSettings, read_settings
from stages.knn.searcher_factory import open_searcher
from stages.knn.vector_set import VectorSet

VERSION = 18
"""Version of the stage's output, equal to LOOKALIKE_STAGE in its specifications. See CONTRIBUTING.md."""


_COARSE_BITS = 4
"""Those of ids that divide the smallest segment whose vectors are also written in 8 bits: one of 1,024 pictures."""


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Reads METRIC, BACKEND and ALGORITHM; returns the function that indexes the segment of one datum.

    The datum's inputs: `features`, the directory /library/<b> of partition: for each bucket of parts <bucket>.parquet;
    `vectors`, the directory /vectors/<b>: for each bucket <bucket>.npy, float32 (n, d); `thumbnails`, the directory
    /thumbnails/<b>: for each bucket <bucket>.thumbnails; `annotations`, the file /annotations/<b>.parquet of
    annotations, or no such input.
    Writes /<b>/images.parquet (stages.files.tables.index_table), sorted by id, and in the same order hashes.npy, uint64
    (N,), and the files /<b>/vectors/<piece>.npy and /<b>/thumbnails/<piece>.thumbnails; index.json; of
    segments that are large enough also /<b>/coarse/<piece>.npy (stages.knn.coarse_rows) and, with an approximate
    ALGORITHM, codes.bin; and passes on /<b>/annotations.parquet. BACKEND searches exactly for the recall of the codes,
    and for nothing else.
    """
    chosen = read_settings(environment)

    def process(datum: Datum) -> None:
        datum.require("index needs /library/<segment> of partition", "features")
        features = datum.inputs["features"]
        target = datum.out / Path(features.repo_path).name
        segment = read_segment(features.path)
        vectors, thumbnails = _given(datum, segment, vector_files), _given(datum, segment, thumbnail_files)
        target.mkdir(parents=True, exist_ok=True)
        if "annotations" in datum.inputs:
            datum.pass_on(datum.inputs["annotations"].path, target / annotation_table.FILE)
        together = segment.vectors.together(vectors, segment.images.origin.dimension, "partition")
        _write_pictures(segment, together, thumbnails, target)
        facts = SegmentFacts(len(segment.images), chosen.metric, segment.images.origin)
        if chosen.algorithm != "exact":
            coded = _coded(segment, together, target / code_index.FILE, chosen, environment)
            facts = replace(facts, codes=coded)
        (target / FACTS).write_text(json.dumps(facts.as_data(), sort_keys=True) + "\n", encoding="ascii")
        print(f"index: segment {target.name}: {len(segment.images)} pictures")

    return process


def _given(datum: Datum, segment: MergedTable, files: ModuleType) -> Path:
    """The directory of the segment's files of vectors or thumbnails. Raises StageError if one is missing."""
    given = datum.inputs.get(files.DIRECTORY)
    if given is None:
        raise StageError(
            f"segment {segment.name} has no {files.DIRECTORY}: index also needs /{files.DIRECTORY}/<segment> of "
            "partition; if an older version of lookalike wrote the specifications: lookalike upgrade; if not: "
            "lookalike deploy --reprocess partition"
        )
    for bucket in segment.vectors.files:
        if not (given.path / f"{bucket}{files.SUFFIX}").exists():
            raise StageError(
                f"segment {segment.name} has no {files.DIRECTORY} of bucket {bucket}; reprocess the partition "
                "pipeline, which writes both: lookalike deploy --reprocess partition"
            )
    return given.path


class SegmentPiece(NamedTuple):
    """Pictures of a segment, given by their rows, whose vectors are a file, and whose thumbnails are another. name: of
    the files, without the suffixes."""

    name: str
    rows: slice


def piece_bits(pictures: int) -> int:
    """The number of bits of ids that divide so many pictures into pieces: a quarter to a half of the square root of the
    pictures, so that neither the pieces nor the bytes that one more picture changes are many."""
    return max(0, (pictures.bit_length() - 1) // 2 - 1)


def pieces(segment: str, ids: Sequence[str], bits: int | None = None) -> list[SegmentPiece]:
    """The pieces of n pictures, whose ascending ids begin with the segment's name, by the digits that follow. bits: of
    them; by default those that `piece_bits` gives."""
    bits = piece_bits(len(ids)) if bits is None else bits
    digits = -(-bits // 4)
    begin, unused = len(segment), 4 * digits - bits
    numbers = [int(id[begin : begin + digits] or "0", 16) >> unused for id in ids]
    firsts = [row for row, number in enumerate(numbers) if not row or number != numbers[row - 1]]
    return [
        SegmentPiece(f"{numbers[first]:0{max(digits, 1)}x}", slice(first, end))
        for first, end in zip(firsts, [*firsts[1:], len(ids)], strict=True)
    ]


def write_coarse(target: Path, segment: str, ids: Sequence[str], vectors: Vectors) -> None:
    """Writes the vectors in 8 bits, float32 (n, d), in a quarter as many files as those of the vectors, so that each is
    as large as one of these; none for a segment of few pieces, of which a search reads nearly all."""
    bits = piece_bits(len(ids))
    if bits < _COARSE_BITS:
        return
    (target / COARSE).mkdir()
    for piece in pieces(segment, ids, bits - 2):
        np.save(target / COARSE / f"{piece.name}{vector_files.SUFFIX}", coarse_rows.rounded(vectors[piece.rows]))


def _write_pictures(segment: MergedTable, vectors: Vectors, thumbnails: Path, target: Path) -> None:
    """Writes the table, the hashes, and the files of vectors, float32 (n, d), and thumbnails."""
    images, shown = segment.images, ThumbnailFiles(thumbnails, "partition")
    places: list[ThumbnailPlace] = []
    rows = np.empty(len(images), np.uint32)
    (target / vector_files.DIRECTORY).mkdir()
    for piece in pieces(segment.name, images.ids):
        some = vectors[piece.rows]
        np.save(target / vector_files.DIRECTORY / f"{piece.name}{vector_files.SUFFIX}", some)
        file = target / thumbnail_files.DIRECTORY / f"{piece.name}{thumbnail_files.SUFFIX}"
        thumbnail_files.write(file, map(shown.read, segment.thumbnails[piece.rows]))
        places += thumbnail_files.places(piece.name, images.thumbnail_sizes[piece.rows])
        rows[piece.rows] = range(len(some))
    write_coarse(target, segment.name, images.ids, vectors)
    IndexTable.of(images, **placed(places), vector_rows=rows).write(target / TABLE)
    np.save(target / "hashes.npy", images.hashes)


def _coded(
    segment: MergedTable, vectors: Vectors, path: Path, chosen: SearchSettings, environment: Mapping[str, str]
) -> CodeFacts | None:
    """Writes the codes of an approximate algorithm; None for a segment that is too small."""
    library = VectorSet(vectors, chosen.metric, segment.images.ids)
    exact = open_searcher(library, chosen, environment)
    return code_index.write(library, chosen.algorithm, exact, path)
