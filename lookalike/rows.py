"""Results as tables: for pandas, for Arrow, and for people who read them in a notebook."""

import importlib
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import pyarrow as pa

from pipelines.errors import LookalikeError
from stages.report import markup

Row = TypeVar("Row")


class Rows(Sequence[Row], Generic[Row]):
    """A sequence of rows, which subclasses describe by the columns of `to_arrow` (`schema`), and in notebooks by the
    heads of a table (`heads`) and its `lines`."""

    schema: pa.Schema
    heads: Sequence[str] = ()

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = tuple(rows)

    def record(self, row: Row) -> dict[str, Any]:
        """A row's values by the names of the columns. Texts that are not UTF-8 have a replacement for each byte that
        Arrow cannot hold."""
        return {name: _replaced(getattr(row, name)) for name in self.schema.names}

    def lines(self) -> Sequence[Sequence[str]]:
        """The table of the rows, as texts."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return markup.fill("rows.html", heads=self.heads, lines=self.lines())

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        return self._rows[place]

    def to_arrow(self) -> pa.Table:
        """The rows as a table of Arrow, with the columns of `schema`."""
        return pa.Table.from_pylist([self.record(each) for each in self._rows], schema=self.schema)

    def to_pandas(self) -> Any:
        """The rows as a pandas.DataFrame with the columns of `schema`. Raises LookalikeError without pandas."""
        try:
            importlib.import_module("pandas")
        except ImportError as error:
            raise LookalikeError("pandas is not installed in this environment: pip install pandas") from error
        return self.to_arrow().to_pandas()


def _replaced(value: Any) -> Any:
    if isinstance(value, tuple):
        return [*map(_replaced, value)]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
