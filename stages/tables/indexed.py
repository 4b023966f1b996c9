"""The tables of a segment of the index: its pictures, and their thumbnails in a file apart.

A search needs the thumbnails of few pictures, and they are as large as the vectors: so they are read by row, from a
memory map. Knows no search and no stage.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from stages.contract import StageError
from stages.damage import is_damage
from stages.sources import Source
from stages.tables.images import Images, OfVectors
from stages.tables.parquet import SOURCES, read_table, reader, stored_sources, true_sources, write_table

TABLE, THUMBNAILS = "images.parquet", "thumbnails.arrow"

COLUMNS = pa.schema([("id", pa.string()), ("sources", SOURCES)])
_FACTS = ("model", "image_size", "fit", "dimension", "backbone")
_COLUMN = pa.schema([("thumbnail", pa.binary())])
_ROWS_PER_BATCH = 1 << 12
"""Rows of a record batch: it determines the file's bytes, and keeps a batch far below Arrow's 2 GB."""


@dataclass(frozen=True)
class Indexed(OfVectors):
    """The n distinct pictures of a segment, sorted by id: the rows of its vectors."""

    ids: Sequence[str]  # n × 64 hex digits, strictly ascending
    sources: Sequence[Sequence[Source]]  # n × at least one
    model: str  # identity hash of the backbone that the vectors came from
    image_size: int  # side of the normalised pictures in pixels
    fit: str  # how they fill their squares, one of stages.framing.FITS
    dimension: int  # length of one vector
    backbone: str = ""  # its name and size, for people

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.sources):
            raise ValueError("columns of a table of pictures differ in length")
        if any(a >= b for a, b in pairwise(self.ids)):
            raise ValueError("ids of a table of pictures must be distinct and sorted")

    def __len__(self) -> int:
        return len(self.ids)


class Thumbnails(Sequence[bytes]):
    """The JPEG files of a segment's pictures, by row. A slice is read at once."""

    def __init__(self, path: Path) -> None:
        """Maps the file. Raises StageError if `write_indexed` did not write it."""
        try:
            with pa.memory_map(str(path)) as file:
                table = pa.ipc.open_file(file).read_all()
            self._column: Any = table["thumbnail"]
            self._column.validate(full=True)  # offsets that lead out of the file would end this process
            if self._column.type != pa.binary():
                raise ValueError(f"its thumbnails are {self._column.type}")
        except Exception as error:
            if not is_damage(error):
                raise
            reason = " ".join(str(error).split())
            raise StageError(f"{path.name} is not a file of thumbnails that lookalike wrote: {reason}") from error

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, row: Any) -> Any:
        found = self._column[row]
        return found.to_pylist() if isinstance(row, slice) else found.as_py()

    def __iter__(self) -> Iterator[bytes]:
        return (each.as_py() for each in self._column)


def write_indexed(images: Images, directory: Path) -> None:
    """Writes the tables of a segment: TABLE and THUMBNAILS. Equal values give equal bytes."""
    columns = {"id": images.ids, "sources": stored_sources(images.sources)}
    write_table(columns, COLUMNS, {name: str(getattr(images, name)) for name in _FACTS}, directory / TABLE)
    with (
        pa.OSFile(str(directory / THUMBNAILS), "wb") as file,
        pa.ipc.new_file(file, _COLUMN, options=pa.ipc.IpcWriteOptions(compression=None)) as writer,
    ):
        for begin in range(0, len(images), _ROWS_PER_BATCH):
            some = pa.array(images.thumbnails[begin : begin + _ROWS_PER_BATCH], pa.binary())
            writer.write_batch(pa.record_batch([some], schema=_COLUMN))


@reader
def read_indexed(file: Path | BinaryIO) -> Indexed:
    """Reads the table that `write_indexed` wrote, from a path or a seekable binary file. Raises StageError for any
    other."""
    table, facts = read_table(file, COLUMNS, *_FACTS)
    return Indexed(
        ids=table["id"].to_pylist(),
        sources=true_sources(table["sources"].to_pylist()),
        model=facts["model"],
        image_size=int(facts["image_size"]),
        fit=facts["fit"],
        dimension=int(facts["dimension"]),
        backbone=facts["backbone"],
    )
