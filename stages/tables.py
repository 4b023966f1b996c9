"""Owns the Parquet tables between the stages: pictures (Images) and results (Neighbours), as values and as files.

Equal values give equal bytes (for one version of pyarrow). Knows no stage, no model and no Pachyderm.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from stages.contract import StageError
from stages.packs import Source

_SOURCES = pa.list_(pa.struct([("path", pa.string()), ("sha256", pa.string())]))
_IMAGES = pa.schema([("id", pa.string()), ("sources", _SOURCES), ("thumbnail", pa.binary())])
_NEIGHBOURS = pa.schema(
    [
        ("query", pa.string()),
        ("rank", pa.int32()),
        ("id", pa.string()),
        ("distance", pa.float32()),
        ("sources", _SOURCES),
        ("thumbnail", pa.binary()),
    ]
)
# Ids and hashes are hex digits, and a query is in many rows: search's tables are a third of what they would be.
_COMPRESSION = dict.fromkeys(
    ("query", "rank", "id", "distance", "sources.list.element.path", "sources.list.element.sha256"), "ZSTD"
) | {"thumbnail": "NONE"}  # they are JPEG
_ROWS_PER_GROUP = 1 << 16  # part of the file's bytes, so it must not come from a default that may change

# Arrow's strings are strict UTF-8; a file name need not be. NUL cannot be in a name, so it opens the escape.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_STORED = re.compile("\0([0-9a-f]{4})")


def unite(*groups: Iterable[Source]) -> tuple[Source, ...]:
    """All sources of the groups, each once, sorted by path."""
    return tuple(sorted({source for group in groups for source in group}))


@dataclass(frozen=True)
class Images:
    """n distinct pictures, sorted by id: what a vectors file (n, dimension) holds row by row."""

    ids: Sequence[str]  # n × 64 hex digits, strictly ascending
    sources: Sequence[Sequence[Source]]  # n × at least one
    thumbnails: Sequence[bytes]  # n JPEG files
    model: str  # identity hash of the backbone that the vectors came from
    image_size: int  # side of the normalised pictures in pixels
    dimension: int  # length of one vector

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.sources) == len(self.thumbnails):
            raise ValueError("columns of a table of pictures differ in length")
        if any(a >= b for a, b in pairwise(self.ids)):
            raise ValueError("ids of a table of pictures must be distinct and sorted")

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, rows: slice) -> "Images":
        """Some of the pictures."""
        return replace(self, ids=self.ids[rows], sources=self.sources[rows], thumbnails=self.thumbnails[rows])


class Neighbour(NamedTuple):
    """One row of a table of results: `id` is the query's neighbour number `rank`."""

    query: str
    rank: int  # 0 is the nearest
    id: str
    distance: float
    sources: Sequence[Source]
    thumbnail: bytes | None


@dataclass(frozen=True)
class Neighbours:
    """Results of one entry's queries in one segment, as columns, ordered by query id and then by rank."""

    queries: Sequence[str]  # n ids of queries, each repeated once per neighbour
    ranks: "np.ndarray[Any, np.dtype[np.int32]]"  # (n,) int32, counted from 0 for each query
    ids: Sequence[str]  # n ids of library pictures
    distances: "np.ndarray[Any, np.dtype[np.float32]]"  # (n,) float32
    sources: Sequence[Sequence[Source]]  # n, of the library pictures
    thumbnails: Sequence[bytes | None]  # n JPEG files, None where the sheet will not show the query
    model: str  # identity hash of the backbone
    metric: str  # "euclidean" or "cosine"
    k: int  # how many neighbours were asked for; a smaller segment gives fewer rows

    def __post_init__(self) -> None:
        lengths = {len(self.ranks), len(self.ids), len(self.distances), len(self.sources), len(self.thumbnails)}
        if lengths != {len(self.queries)}:
            raise ValueError("columns of a table of neighbours differ in length")
        order = list(zip(self.queries, (int(rank) for rank in self.ranks), strict=True))
        if any(a >= b for a, b in pairwise(order)):
            raise ValueError("rows of a table of neighbours must be ordered by query and rank")

    def __len__(self) -> int:
        return len(self.queries)

    def __iter__(self) -> Iterator[Neighbour]:
        """The rows in order."""
        for row, query in enumerate(self.queries):
            yield Neighbour(
                query,
                int(self.ranks[row]),
                self.ids[row],
                float(self.distances[row]),
                self.sources[row],
                self.thumbnails[row],
            )


Wanted = Callable[[Sequence[str], "np.ndarray[Any, np.dtype[np.float32]]"], "np.ndarray[Any, np.dtype[np.bool_]]"]
"""Says of the queries and the distances (float32) of n rows which of these are wanted: bool (n,)."""


def write_images(images: Images, path: Path) -> None:
    """Writes a table of pictures; equal values give equal bytes."""
    facts = {"model": images.model, "image_size": str(images.image_size), "dimension": str(images.dimension)}
    columns = {"id": images.ids, "sources": _stored(images.sources), "thumbnail": images.thumbnails}
    _write(columns, _IMAGES, facts, path)


def read_images(file: Path | BinaryIO) -> Images:
    """Reads what write_images wrote, from a path or a seekable binary file.

    Raises StageError if it is no such table.
    """
    table, facts = _read(file, _IMAGES, "model", "image_size", "dimension")
    return Images(
        ids=table["id"].to_pylist(),
        sources=_true(table["sources"].to_pylist()),
        thumbnails=table["thumbnail"].to_pylist(),
        model=facts["model"],
        image_size=int(facts["image_size"]),
        dimension=int(facts["dimension"]),
    )


def merge(parts: Sequence[Images]) -> Images:
    """One table of several. A picture that several have is one, with the sources of all.

    Raises StageError if they come from different models or image sizes, ValueError for no parts.
    """
    if not parts:
        raise ValueError("nothing to merge")
    first = parts[0]
    for part in parts:
        if (part.model, part.image_size, part.dimension) != (first.model, first.image_size, first.dimension):
            raise StageError(
                f"vectors of two models cannot be mixed: {_described(first)} and {_described(part)}. "
                "Both must come from one commit of the repo models; wait until features has recomputed all pictures, "
                "or start it again with: pachctl run pipeline features"
            )
    sources: dict[str, Sequence[Source]] = {}
    thumbnails: dict[str, bytes] = {}
    for part in parts:
        for id, from_, thumbnail in zip(part.ids, part.sources, part.thumbnails, strict=True):
            sources[id] = unite(sources[id], from_) if id in sources else from_
            thumbnails[id] = thumbnail
    ids = sorted(sources)
    return Images(
        ids=ids,
        sources=[sources[id] for id in ids],
        thumbnails=[thumbnails[id] for id in ids],
        model=first.model,
        image_size=first.image_size,
        dimension=first.dimension,
    )


def _described(images: Images) -> str:
    return f"{images.model} (image size {images.image_size}, {images.dimension} dimensions)"


def write_neighbours(neighbours: Neighbours, path: Path) -> None:
    """Writes a table of results; equal values give equal bytes."""
    facts = {"model": neighbours.model, "metric": neighbours.metric, "k": str(neighbours.k)}
    columns = {
        "query": neighbours.queries,
        "rank": neighbours.ranks,
        "id": neighbours.ids,
        "distance": neighbours.distances,
        "sources": _stored(neighbours.sources),
        "thumbnail": neighbours.thumbnails,
    }
    _write(columns, _NEIGHBOURS, facts, path)


def read_neighbours(file: Path | BinaryIO, wanted: Wanted | None = None) -> Neighbours:
    """Reads what write_neighbours wrote, from a path or a seekable binary file: all rows, or those that are wanted.

    Raises StageError if it is no such table.
    """
    table, facts = _read(file, _NEIGHBOURS, "model", "metric", "k")
    queries = table["query"].to_pylist()
    if wanted is not None:  # before anything is made of what most rows hold, their sources and pictures
        chosen = np.flatnonzero(wanted(queries, table["distance"].to_numpy()))
        table, queries = table.take(chosen), [queries[row] for row in chosen.tolist()]
    return Neighbours(
        queries=queries,
        ranks=table["rank"].to_numpy(),
        ids=table["id"].to_pylist(),
        distances=table["distance"].to_numpy(),
        sources=_true(table["sources"].to_pylist()),
        thumbnails=table["thumbnail"].to_pylist(),
        model=facts["model"],
        metric=facts["metric"],
        k=int(facts["k"]),
    )


def _stored(sources: Sequence[Sequence[Source]]) -> list[list[dict[str, str]]]:
    return [
        [{"path": _UNSTORABLE.sub(lambda c: f"\0{ord(c[0]):04x}", path), "sha256": sha256} for path, sha256 in row]
        for row in sources
    ]


def _true(rows: list[list[dict[str, str]]]) -> list[tuple[Source, ...]]:
    return [tuple(Source(_true_path(item["path"]), item["sha256"]) for item in row) for row in rows]


def _true_path(stored: str) -> str:
    return _STORED.sub(lambda c: chr(int(c[1], 16)), stored) if "\0" in stored else stored


def _write(columns: Mapping[str, Any], schema: pa.Schema, facts: Mapping[str, str], path: Path) -> None:
    with pq.ParquetWriter(
        path,
        schema,
        version="2.6",
        data_page_version="1.0",
        compression=_COMPRESSION,
        use_dictionary=False,
        write_statistics=False,
        store_schema=False,
    ) as writer:
        writer.write_table(pa.table(dict(columns), schema=schema), row_group_size=_ROWS_PER_GROUP)
        writer.add_key_value_metadata(dict(sorted(facts.items())))


def _read(file: Path | BinaryIO, schema: pa.Schema, *facts: str) -> tuple[pa.Table, dict[str, str]]:
    try:
        # partitioning=None: a directory named like "a=b" in the path must not become a column
        table = pq.read_table(file, partitioning=None)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise StageError(f"{_name(file)} is not a table that lookalike wrote: {error}") from error
    metadata = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    missing = [name for name in (*schema.names, *facts) if name not in table.schema.names and name not in metadata]
    if missing:
        raise StageError(
            f"{_name(file)} is not a table that this version of lookalike wrote: it lacks {', '.join(missing)}. "
            "Reprocess the pipeline that wrote it: pachctl update pipeline --reprocess -f its spec"
        )
    return table, {name: metadata[name] for name in facts}


def _name(file: Path | BinaryIO) -> str:
    return file.name if isinstance(file, Path) else str(getattr(file, "name", "the stream"))
