"""The vectors of a library as files for other programs: Parquet, NumPy's .npy, or a flat index of FAISS.

The same commit of the index gives the same bytes. What is known of the pictures is held in memory, and the vectors of
one segment at a time in files that are deleted afterwards.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.transfer.export_targets import FAISS, PARQUET
from stages.datum.contract import StageError
from stages.files import segment_files, vector_files
from stages.files.segment_files import SegmentFacts
from stages.files.tables import annotation_table
from stages.files.tables.index_table import TABLE, IndexTable
from stages.filters.attribute_table import AttributeSegment, AttributeTable
from stages.knn.backend import Vectors
from stages.knn.vector_set import VectorSet
from stages.record.attribute_schema import DERIVED
from stages.record.sources import Source
from stages.report import answer_table

_INDEX = "index"
_VECTOR = "vector"

_BATCH = 4096
"""Vectors that are written at once."""

_COUNT_AT, _COUNT_SIZE = 8, 8
"""The number of vectors in the header of a flat index of FAISS, after its kind and the dimension. It ends with the
number of float32 numbers that follow, of the same size."""

ExportProgress = Callable[[int], None]
"""Called with the number of pictures written since the last call."""


@dataclass(frozen=True)
class VectorExport:
    """The index at a commit. segments: the tables of n pictures by the segment's name, in order. facts: those that all
    segments share, with the count n."""

    index: Repository
    segments: Mapping[str, IndexTable]
    facts: SegmentFacts
    known: AttributeTable = field(repr=False)

    @property
    def metadata(self) -> dict[str, Any]:
        """What the vectors are, in JSON values: the commit of the index, the model, the metric, the number of
        pictures."""
        return {"commit": self.index.at, **self.facts.as_data()}

    def whole(self) -> Iterator[tuple[str, Vectors]]:
        """The vectors of one segment after the other, float32 (m, d), mapped from files that are deleted."""
        for name, images in self.segments.items():
            with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
                self.index.extract(f"/{name}/{vector_files.DIRECTORY}/", Path(scratch))
                together = images.vectors.together(Path(scratch), self.facts.origin.dimension, _INDEX)
            yield name, together

    def vectors(self) -> Iterator[tuple[str, int, Vectors]]:
        """Some of the vectors after others, float32 (m, d), with the segment and its row of the first one."""
        for name, together in self.whole():
            for start in range(0, len(together), _BATCH):
                yield name, start, together[start : start + _BATCH]


def plan(connection: Connection, commit: str = "") -> VectorExport:
    """The export of the index at a commit, by default at its newest good one. Raises LookalikeError if there is none,
    if another version made it, or if its segments do not belong together."""
    index = connection.retry(lambda: Repository(connection, _INDEX, commit).good())
    with _versions_refused():
        segments = {} if index is None else connection.retry(lambda: _read(index, TABLE, IndexTable.read))
        if index is None or not segments:
            raise LookalikeError(
                "the library has no index yet: add pictures with `lookalike add`, see `lookalike status`"
            )
        annotations = connection.retry(lambda: _read(index, annotation_table.FILE, annotation_table.read_annotations))
        facts = [
            segment_files.parse_facts(partial(bytes, content), path.split("/")[1])
            for path, content in index.read_all(f"/*/{segment_files.FACTS}")
        ]
    if not all(each.origin.comparable(facts[0].origin) and each.metric == facts[0].metric for each in facts):
        raise LookalikeError(f"the segments of the index do not belong together. {segment_files.WAIT}")
    known = AttributeTable([AttributeSegment(images, annotations.get(name)) for name, images in segments.items()])
    return VectorExport(index, segments, SegmentFacts(known.pictures, facts[0].metric, facts[0].origin), known)


def write(export: VectorExport, to: Path, done: ExportProgress = lambda _: None) -> list[Path]:
    """Writes the vectors in the format that the ending of `to` names; returns the files, each whole or not there.

    .parquet: a row for each file of a picture, with the columns of stages.report.answer_table and `vector`, a list of d
    float32 numbers; the facts are its metadata. .npy, float32 (n, d), and .faiss: a row for each picture, and beside it
    .jsonl, a line for each with its id and its files, and .json, the facts. FAISS's index has inner products of unit
    vectors where the metric is cosine. Raises LookalikeError if the index is of another version or damaged, or if a
    file cannot be written.
    """
    with _written(to) as files, _versions_refused():
        if to.suffix == PARQUET:
            _write_parquet(export, files(PARQUET), done)
        else:
            _write_rows(export, files(to.suffix), files(".jsonl"), to.suffix == FAISS, done)
            files(".json").write(f"{json.dumps(export.metadata, sort_keys=True)}\n".encode("ascii"))
    return [to] if to.suffix == PARQUET else [to.with_suffix(each) for each in (to.suffix, ".jsonl", ".json")]


def _write_parquet(export: VectorExport, to: IO[bytes], done: ExportProgress) -> None:
    known = export.known
    names = answer_table.ordered([*Source._fields, *(name for name in known.columns if name not in DERIVED)])
    dimension = export.facts.origin.dimension
    columns = {f"{name}_stated" if name == _VECTOR else name: known.column(name) for name in names}
    files = answer_table.shown(pa.table(columns))
    facts = {f"lookalike.{name}": json.dumps(value, sort_keys=True) for name, value in export.metadata.items()}
    vector = pa.field(_VECTOR, pa.list_(pa.float32(), dimension))
    first, done_with = 0, 0
    with pq.ParquetWriter(to, files.schema.append(vector).with_metadata(facts), compression="zstd") as writer:
        for _, _, vectors in export.vectors():
            done_with += len(vectors)
            last = int(np.searchsorted(known.rows, done_with))
            of_files = vectors[known.rows[first:last] - (done_with - len(vectors))]
            column = pa.FixedSizeListArray.from_arrays(pa.array(of_files.ravel()), dimension)
            part = files.slice(first, last - first).append_column(vector, column)
            writer.write_table(part.replace_schema_metadata(facts))
            first = last
            done(len(vectors))


def _write_rows(export: VectorExport, to: IO[bytes], lines: IO[bytes], indexed: bool, done: ExportProgress) -> None:
    """indexed: as FAISS's index rather than as NumPy's array."""
    facts = export.facts
    to.write(_faiss_header(facts) if indexed else vector_files.header(facts.count, facts.origin.dimension))
    row = 0
    for name, start, vectors in export.vectors():
        images = export.segments[name]
        prepared = VectorSet(vectors, facts.metric).prepared if indexed else vectors
        to.write(np.ascontiguousarray(prepared, "<f4").tobytes())
        for at in range(start, start + len(vectors)):
            sources = images.sources[at]
            told = zip(sources, export.known.facts(row, sources), strict=True)
            files = [answer_table.plain(source._asdict() | each) for source, each in told]
            lines.write(f"{json.dumps({'id': images.ids[at], 'files': files})}\n".encode("ascii"))
            row += 1
        done(len(vectors))


def _faiss_header(facts: SegmentFacts) -> bytes:
    """That of an empty index, with the true numbers: FAISS itself writes an index only out of memory."""
    kind = faiss.METRIC_INNER_PRODUCT if facts.metric == "cosine" else faiss.METRIC_L2
    header: bytes = faiss.serialize_index(faiss.IndexFlat(facts.origin.dimension, kind)).tobytes()
    dimension = facts.origin.dimension
    count, numbers = (each.to_bytes(_COUNT_SIZE, "little") for each in (facts.count, facts.count * dimension))
    return header[:_COUNT_AT] + count + header[_COUNT_AT + _COUNT_SIZE : -_COUNT_SIZE] + numbers


def _read(index: Repository, file: str, read: Callable[[BytesIO], Any]) -> dict[str, Any]:
    """A file of each segment that has it, by the segment's name, in order."""
    return {path.split("/")[1]: read(BytesIO(content)) for path, content in sorted(index.read_all(f"/*/{file}"))}


@contextmanager
def _versions_refused() -> Iterator[None]:
    try:
        yield
    except StageError as error:
        raise LookalikeError(
            f"another version of lookalike made the index, or it is damaged ({error}): run `lookalike upgrade`, and "
            "wait for its jobs with `lookalike watch --until-idle`"
        ) from error


@contextmanager
def _written(to: Path) -> Iterator[Callable[[str], IO[bytes]]]:
    """Opens files beside `to` by their endings; at the end they replace those of an earlier export, together."""
    made: dict[Path, Path] = {}
    try:
        with ExitStack() as opened:

            def open_file(suffix: str) -> IO[bytes]:
                path = to.with_suffix(suffix)
                made[path] = path.with_name(f"{path.name}.part")
                return opened.enter_context(made[path].open("wb"))

            yield open_file
        for path, part in made.items():
            part.replace(path)
    except ConnectionError:  # the server's
        raise
    except OSError as error:
        raise LookalikeError(
            f"cannot write {error.filename or to}: {(error.strerror or str(error)).lower()}"
        ) from error
    finally:
        for part in made.values():
            part.unlink(missing_ok=True)
