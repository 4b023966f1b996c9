"""The entries of one bucket of queries, read from an input that may be lazy: their pictures' ids and vectors.

Knows no search and no stage.
"""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stages.datum.contract import DatumInput, StageError, load, spool
from stages.files.tables.image_table import ImageTable
from stages.files.vector_files import read_vectors
from stages.knn.backend import Vectors
from stages.knn.vector_set import VectorSet
from stages.record.origin import Origin
from stages.record.pfs_names import QUESTION_FILE

_MAPPED = 8 << 20
"""Bytes. Larger vectors stay in their file, memory-mapped. Small ones do not: each mapping takes a descriptor, and a
bucket may have thousands of entries."""

_EACH = 128
"""Bytes of an id in memory."""


@dataclass(frozen=True, eq=False)
class QueryEntry:
    """The n distinct pictures of one query entry. filter, where: of the library pictures that are found for them, ""
    for all."""

    name: str  # in PFS
    ids: Sequence[str]  # n × 64 hex digits, strictly ascending
    vectors: Vectors  # float32 (n, dimension)
    origin: Origin
    filter: str = ""
    where: str = ""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def size(self) -> int:
        """The bytes that it takes."""
        return self.vectors.nbytes + _EACH * len(self)


def list_entries(bucket: DatumInput) -> list[DatumInput]:
    """The entries of a bucket, by name. Raises StageError if there is anything but directories of entries."""
    found = sorted(bucket.path.iterdir())
    strange = [each.name for each in found if not each.is_dir()]
    if strange:
        raise StageError(
            f"/{bucket.repo_path} holds {strange[0]}, not directories of entries: the glob of queries in the spec must "
            'be "/queries/*". If it is, an older version wrote this: lookalike deploy --reprocess features-queries'
        )
    return [DatumInput(bucket.name, each, f"{bucket.repo_path}/{each.name}", bucket.commit) for each in found]


def read(given: DatumInput, metric: str) -> QueryEntry | None:
    """The pictures of an entry; None if it has none. Raises StageError, which names the entry, for files that are
    damaged or do not fit together, and for vectors without a distance in the metric."""
    name = Path(given.repo_path).name
    if not (given.path / "images.parquet").exists():
        return None
    try:
        return _read(name, given.path, metric)
    except StageError as error:
        raise StageError(f"entry {name}: {error}") from error


def _read(name: str, directory: Path, metric: str) -> QueryEntry | None:
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        images = ImageTable.read(spool(directory / "images.parquet", Path(scratch)))
        if not len(images):
            return None
        vectors = read_vectors(spool(directory / "vectors.npy", Path(scratch)), images.origin.dimension)
    if len(vectors) != len(images):
        raise StageError(
            f"it has {len(vectors)} vectors for {len(images)} pictures; reprocess the features-queries pipeline: "
            "lookalike deploy --reprocess features-queries"
        )
    VectorSet(vectors, metric, images.ids)  # checks them
    question = directory / QUESTION_FILE
    asked = load("stages.files.question").from_json(question.read_bytes()) if question.exists() else None
    return QueryEntry(
        name,
        list(images.ids),
        vectors if vectors.nbytes > _MAPPED else np.array(vectors),
        images.origin,
        *(("", "") if asked is None else (asked.filter, asked.where)),
    )


def groups(entries: Iterable[QueryEntry], most: int) -> Iterator[list[QueryEntry]]:
    """Consecutive entries of the same filters that have at most so many pictures together, or one that has more."""
    group: list[QueryEntry] = []
    for each in entries:
        filters = [(some.filter, some.where) for some in (each, *group[:1])]
        if group and (filters[0] != filters[1] or sum(map(len, group)) + len(each) > most):
            yield group
            group = []
        group.append(each)
    if group:
        yield group
