"""The partition stage: a bucket of the parts that features computed, dealt to the segments of the index without the
pictures that masks hide.

So neither the backbone nor preprocess knows the segments: another number of them costs a copy of the vectors. Imports
no model. Runs as `python -m stages.partition`, under Pachyderm or on plain directories.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.partition"))

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stages.datum.contract import Datum, StageError
from stages.datum.progress import Progress
from stages.datum.stage_parameters import integer
from stages.datum.text_format import counted
from stages.files import thumbnail_files, vector_files
from stages.files.merged_tables import read_bucket
from stages.files.thumbnail_files import DIRECTORY, SUFFIX, ThumbnailFiles
from stages.record import masks, part_names

VERSION = 7
"""Version of the stage's output, equal to LOOKALIKE_STAGE in its specifications. See CONTRIBUTING.md."""

_LIBRARY = "library"


class _Segment(NamedTuple):
    name: str
    rows: slice


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Reads SEGMENT_DIGITS (default 1); returns the function that deals one bucket.

    The datum's inputs: `features`, the directory /library/<bucket> of features, with <part>.npy, float32 (n, d), and
    <part>.parquet (stages.files.tables.index_table) at any depth; `thumbnails`, the directory /thumbnails/<bucket> of
    preprocess, with <part>/<source>.thumbnails at the same depth; `masks`, the directory /library/<bucket> of masks
    (stages.record.masks), if there is one. Without features there is nothing to deal. Writes for each segment that has
    pictures of the bucket /library/<segment>/<bucket>.parquet (stages.files.tables.image_table), sorted by id, and in
    the same order /vectors/<segment>/<bucket>.npy, float32 (m, d), and /thumbnails/<segment>/<bucket>.thumbnails. A
    picture in several parts is one row, with all its sources and the thumbnail of the smallest
    (stages.record.sources.chosen).
    """
    digits = integer(environment, "SEGMENT_DIGITS", default=1, lowest=1, highest=part_names.MOST_DIGITS)

    def process(datum: Datum) -> None:
        if "features" not in datum.inputs:  # as before the first model, or for a mask of what is not there
            print("partition: this bucket has no vectors")
            return
        datum.require(
            "partition needs /library/<bucket> of features and /thumbnails/<bucket> of preprocess; if the "
            "specification is right, an older version of preprocess wrote the packs: lookalike deploy --reprocess "
            "preprocess",
            "thumbnails",
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
    parts, shown = datum.inputs["features"].path, datum.inputs["thumbnails"].path
    merged = read_bucket(parts, shown, _masks(datum))
    if merged is None:
        print(f"partition: no pictures of bucket {bucket} are left")
        return
    images, segments = merged.images, list(_segments(merged.images.ids, digits))
    progress, thumbnails = Progress("pictures", len(images)), ThumbnailFiles(shown, "preprocess")
    for name, rows in segments:
        vectors = np.empty((rows.stop - rows.start, images.origin.dimension), np.dtype("<f4"))
        merged.vectors.of(range(rows.start, rows.stop)).copy(parts, vectors, "features")
        np.save(_made(datum.out, vector_files.DIRECTORY, name) / f"{bucket}{vector_files.SUFFIX}", vectors)
        images.part(rows).write(_made(datum.out, _LIBRARY, name) / f"{bucket}.parquet")
        target = datum.out / DIRECTORY / name / f"{bucket}{SUFFIX}"
        thumbnail_files.write(target, map(thumbnails.read, merged.thumbnails[rows]))
        progress.add(len(vectors))
    print(
        f"partition: {counted(len(images), 'picture', 'pictures')} of bucket {bucket} in "
        f"{counted(len(segments), 'segment', 'segments')}"
    )


def _masks(datum: Datum) -> Mapping[str, Collection[str]]:
    """What the masks of the bucket hide. Raises StageError for a damaged one, which would show what was removed."""
    given = datum.inputs.get(masks.REPO)
    try:
        return masks.read_bucket(given.path) if given is not None else {}
    except ValueError as error:
        raise StageError(
            f"{error}; put it again, a JSON string with the path of a picture in each line, or delete it from the repo "
            f"{masks.REPO}"
        ) from error


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
