"""Files of vectors that another program wrote, read some rows at a time: Parquet, or NumPy's .npy beside a .jsonl.

Knows no library. A row that holds no vector of numbers is given with the reason, and never passed over.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.errors import LookalikeError

_ROWS = 4096
"""Rows that are read at once."""

_FACTS = "lookalike."
"""Before the names of the facts in Parquet that `lookalike export --vectors` wrote."""

Numbers = npt.NDArray[np.floating[Any]]


class StatedModel(NamedTuple):
    """The model that a file says its vectors are of: its hash and its name, "" where it does not."""

    model: str = ""
    backbone: str = ""


class VectorRow(NamedTuple):
    """A row of a file: its number from 1, the picture's id and path, "" where it has none, and its vector (d,), or the
    reason why there is none."""

    line: int
    id: str
    path: str
    vector: Numbers | None
    reason: str = ""


class VectorSource:
    """A file that can be read. count: of its rows. stated: the model that it names."""

    def __init__(self, file: Path, column: str) -> None:
        """column: of the vectors in Parquet. Raises LookalikeError for a file that is neither of the two forms."""
        self.file, self._column = file, column
        self._lines = file.with_suffix(".jsonl")
        try:
            if file.suffix == ".parquet":
                self._parquet = pq.ParquetFile(file)
                self.count, self.stated = self._parquet.metadata.num_rows, self._checked_parquet()
            elif file.suffix == ".npy":
                self._array = _mapped(file)
                self.count, self.stated = len(self._array), self._checked_array()
            else:
                raise LookalikeError(
                    f"{file.name}: vectors are read from .parquet, with a column id or path and a column "
                    f"{column}, and from .npy with a .jsonl beside it: write one of these"
                )
        except (OSError, pa.ArrowException, ValueError) as error:
            raise LookalikeError(f"cannot read {file}: {_first_line(error)}") from error

    def rows(self) -> Iterator[VectorRow]:
        """All rows in order. Raises LookalikeError where the file is damaged."""
        try:
            yield from self._parquet_rows() if self.file.suffix == ".parquet" else self._array_rows()
        except (OSError, pa.ArrowException, ValueError) as error:
            raise LookalikeError(f"cannot read {self.file}: {_first_line(error)}") from error

    def _checked_parquet(self) -> StatedModel:
        schema = self._parquet.schema_arrow
        if self._column not in schema.names:
            raise LookalikeError(
                f"{self.file.name} has no column {self._column} ({', '.join(schema.names[:8])}): name the one with the "
                "vectors with --column"
            )
        type = schema.field(self._column).type
        lists = pa.types.is_list(type) or pa.types.is_large_list(type) or pa.types.is_fixed_size_list(type)
        if not lists or not (pa.types.is_floating(type.value_type) or pa.types.is_integer(type.value_type)):
            raise LookalikeError(f"the column {self._column} holds {type}: it has to hold lists of numbers")
        if not {"id", "path"} & {*schema.names}:
            raise LookalikeError(f"{self.file.name} has neither a column id nor a column path to name the pictures")
        given = {key.decode(): value for key, value in (schema.metadata or {}).items()}
        return _stated({name: json.loads(given.get(f"{_FACTS}{name}", '""')) for name in StatedModel._fields})

    def _parquet_rows(self) -> Iterator[VectorRow]:
        names = [name for name in ("id", "path") if name in self._parquet.schema_arrow.names]
        line = 1
        for batch in self._parquet.iter_batches(_ROWS, columns=[*names, self._column]):
            texts = {name: pc.fill_null(batch.column(name).cast(pa.string()), "").to_pylist() for name in names}
            vectors = batch.column(self._column)
            nothing = [""] * len(batch)
            for row, (id, path) in enumerate(zip(texts.get("id", nothing), texts.get("path", nothing), strict=True)):
                held = vectors[row].values if vectors[row].is_valid else None
                found = None if held is None else held.to_numpy(zero_copy_only=False)
                yield VectorRow(line + row, id, path, found, "" if held is not None else "it has no vector")
            line += len(batch)

    def _checked_array(self) -> StatedModel:
        if self._array.ndim != 2 or self._array.dtype.kind != "f":
            raise LookalikeError(
                f"{self.file.name} holds {self._array.dtype} {self._array.shape}: it has to hold floating-point "
                "numbers, a row for each picture"
            )
        if not self._lines.is_file():
            raise LookalikeError(
                f"{self._lines.name} is missing beside {self.file.name}: a line for each row, in JSON, with the id or "
                "the path of the picture"
            )
        facts = self.file.with_suffix(".json")
        return _stated(json.loads(facts.read_bytes())) if facts.is_file() else StatedModel()

    def _array_rows(self) -> Iterator[VectorRow]:
        with self._lines.open("rb") as lines:
            row = 0
            while some := [*islice(lines, _ROWS)]:
                if row + len(some) > self.count:
                    break
                vectors = np.array(self._array[row : row + len(some)])
                for at, (line, vector) in enumerate(zip(some, vectors, strict=True)):
                    id, path, reason = _named(line)
                    yield VectorRow(row + at + 1, id, path, None if reason else vector, reason)
                row += len(some)
        if row != self.count or some:
            raise LookalikeError(
                f"{self._lines.name} does not have a line for each of the {self.count:,} rows of {self.file.name}: "
                "write both again"
            )


def _mapped(file: Path) -> Numbers:
    found: Numbers = np.load(file, mmap_mode="r", allow_pickle=False)
    return found


def _stated(facts: Any) -> StatedModel:
    held: Mapping[str, Any] = facts if isinstance(facts, dict) else {}
    return StatedModel(*(str(held.get(name) or "") for name in StatedModel._fields))


def _named(line: bytes) -> tuple[str, str, str]:
    """The id and the path in a line of JSON, and the reason why there are none."""
    try:
        found = json.loads(line)
    except ValueError:
        return "", "", "its line is not JSON"
    if not isinstance(found, dict):
        return "", "", "its line is not an object of JSON"
    files: Sequence[Any] = found.get("files") or [{}]
    first = files[0] if isinstance(files, list) and isinstance(files[0], dict) else {}
    return str(found.get("id") or ""), str(found.get("path") or first.get("path") or ""), ""


def _first_line(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).partition("\n")[0]
