"""The columns of tables: their types in files, and their values in memory.

In memory, texts are lists, numbers NumPy arrays. Bytes, lists and sources stay Arrow's, and so may texts: of these,
Python's objects are made row by row, when they are asked for, since few are. Knows no tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from stages.files.tables.parquet import stored_text, true_text
from stages.record.sources import Source

Numbers = Sequence[int] | npt.NDArray[Any]
"""A column of numbers, which a table holds as a NumPy array."""

_ValueT = TypeVar("_ValueT")

_NUMBERS = {
    "width": pa.int32(),
    "height": pa.int32(),
    "bytes": pa.int64(),
    "latitude": pa.float64(),
    "longitude": pa.float64(),
}
SOURCES = pa.list_(pa.struct([(name, _NUMBERS.get(name, pa.string())) for name in Source._fields]))


class ArrowColumn(Sequence[_ValueT], Generic[_ValueT]):
    """A column of which Python's objects are made when they are asked for.

    stored: Arrow's array.
    """

    def __init__(self, stored: Any) -> None:
        """Raises ValueError for a damaged array."""
        stored.validate(full=True)
        self.stored = stored

    @classmethod
    def of(cls, values: Iterable[Any], type: pa.DataType) -> Self:
        """The same values as a column, which they may be."""
        return values if isinstance(values, cls) else cls(pa.array(values, type))

    def taken(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> Self:
        """The values in these rows."""
        return type(self)(self.stored.take(pa.array(rows, pa.int64())))

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """Of a column of lists the length of each, int64 (n,)."""
        lengths: npt.NDArray[Any] = self.stored.value_lengths().to_numpy(zero_copy_only=False)
        return lengths.astype(np.int64)

    def __len__(self) -> int:
        return len(self.stored)

    def __getitem__(self, row: Any) -> Any:
        return type(self)(self.stored[row]) if isinstance(row, slice) else self._values([self.stored[row].as_py()])[0]

    def __iter__(self) -> Iterator[_ValueT]:
        return iter(self._values(self.stored.to_pylist()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def _values(self, stored: list[Any]) -> Sequence[_ValueT]:
        return stored


class ListColumn(ArrowColumn[list[Any]]):
    """A column of lists of numbers."""

    @classmethod
    def divided(cls, values: npt.NDArray[Any], counts: npt.NDArray[np.integer[Any]]) -> ListColumn:
        """The lists of these lengths, whose values follow each other."""
        return cls(pa.ListArray.from_arrays(pa.array(np.cumsum([0, *counts]), pa.int32()), pa.array(values)))

    @property
    def values(self) -> npt.NDArray[Any]:
        """The numbers of all rows, one after the other."""
        found: npt.NDArray[Any] = self.stored.flatten().to_numpy()
        return found


class SourceColumn(ArrowColumn[tuple[Source, ...]]):
    """A column of sources, of the type SOURCES. A row may lack them, where the column says so."""

    def __init__(self, stored: Any) -> None:
        """Raises ValueError for a damaged array."""
        super().__init__(stored.cast(SOURCES))  # Parquet names the elements of a list otherwise
        each = stored.flatten()
        if each.null_count or each.field("path").null_count:
            raise ValueError("it lacks sources")

    @classmethod
    def of(cls, values: Iterable[Sequence[Source]], type: pa.DataType = SOURCES) -> SourceColumn:
        """The same sources as a column, which they may be."""
        if isinstance(values, cls):
            return values
        return cls(pa.array([None if each is None else _stored(each) for each in values], type))

    @property
    def stored_paths(self) -> Any:
        """The stored paths of all sources of all rows, in order: an Arrow array, see `true_text`."""
        return self.stored.flatten().field("path")

    @property
    def paths(self) -> list[str]:
        """The true paths of the same."""
        return [true_text(path) for path in self.stored_paths.to_pylist()]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(map(tuple, other))

    __hash__ = None

    def _values(self, stored: list[Any]) -> list[Any]:
        return [None if row is None else tuple(map(_source, row)) for row in stored]


def _source(stored: dict[str, Any]) -> Source:
    return Source(**stored | {"path": true_text(stored["path"])})


def _stored(sources: Sequence[Source]) -> list[dict[str, Any]]:
    return [each._asdict() | {"path": stored_text(each.path)} for each in sources]


@dataclass(frozen=True)
class Column:
    """A column of a table, as the annotation of the field that holds it.

    name: in files. ordered: the rows are distinct, and ascend by all such columns together. lazy: its texts stay
    Arrow's. escaped: its texts are file names, which need not be what Arrow can hold. optional: it may lack values.
    """

    name: str
    type: pa.DataType
    ordered: bool = False
    lazy: bool = False
    escaped: bool = False
    optional: bool = False

    def value(self, given: Any) -> Any:
        """A sequence as a table holds it in memory."""
        if self._arrow is not None:
            return self._arrow.of(given, self.type)
        return given if self.type == pa.string() else np.asarray(given, self.type.to_pandas_dtype())

    def stored(self, value: Any) -> Any:
        """A value as Arrow takes it."""
        return value.stored if self._arrow else [stored_text(each) for each in value] if self.escaped else value

    def parsed(self, column: pa.ChunkedArray) -> Any:
        """The value of a column in a file. Raises ValueError for a damaged one."""
        if column.null_count and not self.optional:
            raise ValueError(f"its column {self.name} lacks values")
        if self._arrow is not None:
            return self._arrow(column.combine_chunks())
        if self.type != pa.string():
            return column.to_numpy()
        texts = column.to_pylist()
        return [true_text(each) for each in texts] if self.escaped else texts

    @property
    def _arrow(self) -> type[ArrowColumn[Any]] | None:
        if self.type == SOURCES:
            return SourceColumn
        if pa.types.is_list(self.type):
            return ListColumn
        return ArrowColumn if self.lazy or self.type == pa.binary() else None


def taken(values: Any, rows: Sequence[int] | npt.NDArray[np.int64]) -> Any:
    """The values of a column in these rows."""
    if isinstance(values, ArrowColumn):
        return values.taken(rows)
    return values[np.asarray(rows, np.int64)] if isinstance(values, np.ndarray) else [values[row] for row in rows]


def joined(columns: Sequence[Any]) -> Any:
    """The values of several columns of one kind, at least one, one after the other."""
    first = columns[0]
    if isinstance(first, ArrowColumn):
        return type(first)(pa.concat_arrays([each.stored for each in columns]))
    return np.concatenate(columns) if isinstance(first, np.ndarray) else [each for column in columns for each in column]


def ascending(arrays: Sequence[pa.Array]) -> bool:
    """Whether rows are distinct and ascend by these columns together, given as Arrow's arrays."""
    rising: Any = None
    equal: Any = None
    for values in arrays:
        before, after = values[:-1], values[1:]
        larger = pc.less(before, after)
        rising = larger if rising is None else pc.or_(rising, pc.and_(equal, larger))
        same = pc.equal(before, after)
        equal = same if equal is None else pc.and_(equal, same)
    return bool(pc.all(rising, min_count=0).as_py())
