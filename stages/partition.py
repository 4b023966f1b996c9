"""The partition stage: a bucket of the parts that features computed, dealt to the segments of the index.

So neither the backbone nor preprocess knows the segments: another number of them costs a copy of the vectors. Imports
no model. Runs as `python -m stages.partition`, under Pachyderm or on plain directories.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.partition"))

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.datum.contract import Datum, StageError
from stages.datum.progress import Progress
from stages.datum.stage_parameters import integer
from stages.datum.text_format import counted
from stages.files import thumbnail_files, vector_files
from stages.files.merged_tables import read_bucket
from stages.files.tables.image_table import BucketTable
from stages.files.thumbnail_files import DIRECTORY, SUFFIX, ThumbnailPlace
from stages.record import part_names

VERSION = 6
"""Version of the stage's output, equal to LOOKALIKE_STAGE in its specifications. See CONTRIBUTING.md."""

_LIBRARY = "library"


class _Segment(NamedTuple):
    name: str
    rows: slice


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Reads SEGMENT_DIGITS (default 1); returns the function that deals one bucket.

    The datum's inputs: `features`, the directory /library/<bucket> of features, with <part>.npy, float32 (n, d), and
    <part>.parquet (stages.files.tables.index_table) at any depth; `thumbnails`, the directory /thumbnails/<bucket> of
    preprocess, with <part>/<source>.thumbnails at the same depth. Writes for each segment that has pictures of the
    bucket /library/<segment>/<bucket>.parquet (stages.files.tables.image_table), sorted by id, and in the same order
    /vectors/<segment>/<bucket>.npy, float32 (m, d), and /thumbnails/<segment>/<bucket>.thumbnails. A picture in several
    parts is one row, with all its sources and the thumbnail of the smallest (stages.record.sources.chosen).
    """
    digits = integer(environment, "SEGMENT_DIGITS", default=1, lowest=1, highest=part_names.MOST_DIGITS)

    def process(datum: Datum) -> None:
        datum.require(
            "partition needs /library/<bucket> of features and /thumbnails/<bucket> of preprocess; if the "
            "specification is right, an older version of preprocess wrote the packs: lookalike deploy --reprocess "
            "preprocess",
            *("features", "thumbnails"),
        )
        kind, _, bucket = datum.inputs["features"].repo_path.partition("/")
        if kind != _LIBRARY or not bucket:
            raise StageError(
                f"the input features is /{datum.inputs['features'].repo_path}; it must be /library/<bucket>: correct "
                "its glob in the spec"
            )
        _deal(datum, bucket.replace("/", "-"), digits)

    return process


def _deal(datum: Datum, bucket: str, digits: int) -> None:
    merged = read_bucket(datum.inputs["features"].path)
    images, segments = merged.images, list(_segments(merged.images.ids, digits))
    progress = Progress("pictures", len(images))
    read = np.empty((len(images), images.origin.dimension), np.dtype("<f4"))
    merged.vectors.copy(datum.inputs["features"].path, read, "features")
    for name, rows in segments:
        np.save(_made(datum.out, vector_files.DIRECTORY, name) / f"{bucket}{vector_files.SUFFIX}", read[rows])
        table = BucketTable.of(images.part(rows), bucket=bucket)
        table.write(_made(datum.out, _LIBRARY, name) / f"{bucket}.parquet")
    del read  # before the thumbnails take as much
    shown = _read(merged.thumbnails, datum.inputs["thumbnails"].path)
    for name, rows in segments:
        thumbnail_files.write(datum.out / DIRECTORY / name / f"{bucket}{SUFFIX}", shown[rows])
        progress.add(rows.stop - rows.start)
    print(
        f"partition: {counted(len(images), 'picture', 'pictures')} of bucket {bucket} in "
        f"{counted(len(segments), 'segment', 'segments')}"
    )


def _made(out: Path, kind: str, segment: str) -> Path:
    directory = out / kind / segment
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _segments(ids: Sequence[str], digits: int) -> Iterator[_Segment]:
    """The segments of ascending ids, with their rows."""
    first = 0
    for name, members in groupby(ids, lambda id: id[:digits]):
        rows = slice(first, first + sum(1 for _ in members))
        yield _Segment(name, rows)
        first = rows.stop


def _read(places: Sequence[ThumbnailPlace], directory: Path) -> NDArray[np.object_]:
    """The thumbnails at these places, JPEG files, by row; each file is read once."""
    found = np.empty(len(places), object)
    by_file: dict[str, list[int]] = {}
    for row, place in enumerate(places):
        by_file.setdefault(place.part, []).append(row)
    for name, rows in by_file.items():
        path = directory / f"{name}{SUFFIX}"
        try:
            content = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError) as failure:
            raise StageError(
                f"{path.name}, a file of thumbnails, is missing: an older version of preprocess wrote its pack; "
                "reprocess it: lookalike deploy --reprocess preprocess"
            ) from failure
        for row in rows:
            _, begin, size = places[row]
            found[row] = thumbnail_files.check(content[begin : begin + size], places[row], path.name, "preprocess")
    return found
