"""Tables of labelled pictures: the rows of a file of vectors, each with its label and thumbnail."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from stages.files.tables.image_table import VectorOrigin
from stages.files.tables.parquet import read_table, reader, stored_text, true_text, write_table

_SCHEMA = pa.schema([("id", pa.string()), ("source", pa.string()), ("label", pa.string()), ("thumbnail", pa.binary())])
_FACTS = ("model", "image_size", "fit", "dimension", "backbone", "devices", "held_out")


@dataclass(frozen=True)
class LabelTable(VectorOrigin):
    """The n labelled pictures of a segment, sorted by id: the rows of a file of vectors (n, dimension). n may be 0."""

    ids: Sequence[str]  # n × 64 hex digits, strictly ascending
    sources: Sequence[str]  # n true paths, of the first source of each
    labels: Sequence[str]  # n
    thumbnails: Sequence[bytes]  # n JPEG files
    model: str  # identity hash of the backbone that the vectors came from
    image_size: int  # side of the normalised pictures in pixels
    fit: str  # how they fill their squares, one of stages.record.framing.FITS
    dimension: int  # length of one vector
    backbone: str = ""  # its name and size, for people
    devices: tuple[str, ...] = ()  # the kinds that computed the vectors (stages.backbone.devices.kind), sorted
    held_out: float = 0.0  # the share of pictures that are held out: stages.classify.training.splits

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.sources) == len(self.labels) == len(self.thumbnails):
            raise ValueError("columns of a table of labelled pictures differ in length")
        if any(a >= b for a, b in pairwise(self.ids)):
            raise ValueError("ids of a table of pictures must be distinct and sorted")

    def __len__(self) -> int:
        return len(self.ids)


def write_labelled(labelled: LabelTable, path: Path) -> None:
    """Writes a table of labelled pictures; equal values give equal bytes."""
    columns = {
        "id": labelled.ids,
        "source": [stored_text(each) for each in labelled.sources],
        "label": labelled.labels,
        "thumbnail": labelled.thumbnails,
    }
    facts = {name: str(getattr(labelled, name)) for name in _FACTS}
    write_table(columns, _SCHEMA, facts | {"devices": json.dumps(labelled.devices)}, path)


@reader
def read_labelled(file: Path | BinaryIO, drawn: Collection[str] | None = None) -> LabelTable:
    """Reads what write_labelled wrote, from a path or a seekable binary file. drawn: the ids of the pictures whose
    thumbnails are wanted, None for all; those of the others are empty. Raises StageError for any other file."""
    table, facts = read_table(file, _SCHEMA, *_FACTS)
    ids = table["id"].to_pylist()
    thumbnails = table["thumbnail"]
    return LabelTable(
        ids=ids,
        sources=[true_text(each) for each in table["source"].to_pylist()],
        labels=table["label"].to_pylist(),
        thumbnails=thumbnails.to_pylist()
        if drawn is None
        else [thumbnails[row].as_py() if id in drawn else b"" for row, id in enumerate(ids)],
        model=facts["model"],
        image_size=int(facts["image_size"]),
        fit=facts["fit"],
        dimension=int(facts["dimension"]),
        backbone=facts["backbone"],
        devices=tuple(json.loads(facts["devices"])),
        held_out=float(facts["held_out"]),
    )
