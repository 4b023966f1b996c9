"""The labelled stage: the labelled pictures of a segment, with vectors and thumbnails, to train on.

Inputs: `vectors` and `thumbnails`, the directories /vectors/<segment> and /thumbnails/<segment> of partition, lazy or
not; `features`, the directory /library/<segment> of partition; `labels`, the file /labels/<segment>.parquet of
annotations.
Parameter: HELD_OUT, the share of pictures that no training sees. Writes /<segment>.npy, float32 (n, d), and
/<segment>.parquet (stages.files.tables.label_table) of the pictures with a label that can be used, sorted by id, which
may be none; and /left_out/<segment>.json."""

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.labelled"))

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stages.classify.training.splits import share
from stages.datum.contract import Datum
from stages.files.merged_tables import MergedTable, read_segment
from stages.files.tables.annotation_table import PATH, read_annotations
from stages.files.tables.columns import SourceColumn
from stages.files.tables.label_table import LabelTable
from stages.files.tables.parquet import true_text
from stages.files.thumbnail_files import ThumbnailFiles
from stages.quality.picture_labels import UNLABELLED, LabelEncoder, examples, first_sources
from stages.record.attribute_schema import LABEL
from stages.record.label_files import SourceLabels

VERSION = 6
"""Version of the stage's output, equal to LOOKALIKE_STAGE in its specifications. See CONTRIBUTING.md."""

LEFT_OUT = "left_out"


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Reads HELD_OUT (default 0.2, at most 0.9)."""
    held_out = share(environment)

    def process(datum: Datum) -> None:
        datum.require(
            "labelled needs /library/<segment>, /vectors/<segment> and /thumbnails/<segment> of partition, and "
            "/labels/<segment>.parquet of annotations; if an older version of lookalike wrote the specifications: "
            "lookalike upgrade",
            *("labels", "features", "vectors", "thumbnails"),
        )
        segment = read_segment(datum.inputs["features"].path)
        _write(datum, segment, _coder(datum.inputs["labels"].path), held_out)

    return process


def _coder(file: Path) -> LabelEncoder:
    """The labels of the segment's files. Those of a file that has several are not told apart here."""
    table = read_annotations(file)
    given = SourceLabels()
    for stored, label in zip(table[PATH].to_pylist(), table[LABEL].to_pylist(), strict=True):
        if label is None:
            given.conflicts[true_text(stored)] = []
        else:
            given.of[true_text(stored)] = label
    return LabelEncoder(given)


def _write(datum: Datum, segment: MergedTable, coder: LabelEncoder, held_out: float) -> None:
    name, images, out = Path(datum.inputs["features"].repo_path).name, segment.images, datum.out
    sources = SourceColumn.of(images.sources)
    paths, firsts = sources.paths, first_sources(sources)
    codes, mixed = coder.of_pictures(paths, firsts)
    rows = np.flatnonzero(codes != UNLABELLED).tolist()
    files = ThumbnailFiles(datum.inputs["thumbnails"].path, "partition")
    thumbnails = [files.read(segment.thumbnails[row]) for row in rows]
    chosen = images.part(rows)
    labelled = LabelTable.of(
        chosen,
        sources=[sources[0].path for sources in chosen.sources],
        labels=[coder.names[codes[row]] for row in rows],
        thumbnails=thumbnails,
        held_out=held_out,
    )
    vectors = np.empty((len(labelled), images.origin.dimension), np.dtype("<f4"))
    segment.vectors.of(rows).copy(datum.inputs["vectors"].path, vectors, "partition")
    np.save(out / f"{name}.npy", vectors)
    labelled.write(out / f"{name}.parquet")
    left_out = _left_out(coder.known(paths), labelled, (paths[firsts[row]] for row in np.flatnonzero(mixed)))
    (out / LEFT_OUT).mkdir(exist_ok=True)
    (out / LEFT_OUT / f"{name}.json").write_text(json.dumps(left_out, sort_keys=True) + "\n", encoding="ascii")
    print(f"labelled: {len(labelled)} of {len(images)} pictures of {name} have labels")


def _left_out(known: set[str], labelled: LabelTable, mixed: Iterable[str]) -> dict[str, Any]:
    """mixed: pictures whose sources have several labels. known: the number of sources with labels. others: those of
    them that the table does not name, all: with these, the labels of sources without a picture can be found."""
    return {
        "mixed": examples(sorted(mixed)),
        "known": len(known),
        "others": sorted(known - {*labelled.sources}),
    }
