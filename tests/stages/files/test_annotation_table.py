"""Annotations as files: reading inverts writing, equal values give equal bytes, and other files are refused."""

import io
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from stages.datum.contract import StageError
from stages.files.tables.annotation_table import PATH, TYPES, read_annotations, stated_only, write_annotations
from stages.files.tables.parquet import stored_text, true_text
from tests.example_counts import examples

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": st.text(st.characters(codec="utf-8"), min_size=1),
    "integer": st.integers(-(2**63), 2**63 - 1),
    "number": st.floats(allow_nan=False),
    "boolean": st.booleans(),
    "date": st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(lambda each: each.replace(microsecond=0)),
}
names = st.from_regex(r"[a-z_]{1,5}", fullmatch=True).filter(lambda name: name != PATH)
types = st.dictionaries(names, st.sampled_from([*TYPES]))


@st.composite
def stated(draw: st.DrawFn) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Values by file and attribute, and the types of the attributes. File names may be any text."""
    of = draw(types)
    row = st.fixed_dictionaries({}, optional={name: VALUES[type] for name, type in of.items()})
    return draw(st.dictionaries(st.text(st.characters(codec=None)), row, max_size=6)), of


def table_of(values: dict[str, dict[str, Any]], of: dict[str, str]) -> pa.Table:
    columns = {PATH: pa.array([*map(stored_text, values)], pa.string())}
    columns |= {name: pa.array([each.get(name) for each in values.values()], TYPES[of[name]]) for name in of}
    return pa.table(columns)


@given(stated())
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_reading_inverts_writing(tmp_path: Path, stated: tuple[dict[str, dict[str, Any]], dict[str, str]]) -> None:
    values, of = stated
    one, other = tmp_path / "one.parquet", tmp_path / "other.parquet"
    write_annotations(stated_only(table_of(values, of)), one)
    write_annotations(stated_only(table_of(dict(reversed(values.items())), dict(reversed(of.items())))), other)
    assert one.read_bytes() == other.read_bytes()
    table = read_annotations(one)
    names = table.schema.names[1:]
    assert names == sorted({name for each in values.values() for name in each})
    assert [table.schema.field(name).type for name in names] == [TYPES[of[name]] for name in names]
    read = {
        true_text(row.pop(PATH)): {name: value for name, value in row.items() if value is not None}
        for row in table.to_pylist()
    }
    assert read == {file: given for file, given in values.items() if given}


def parquet(table: pa.Table) -> io.BytesIO:
    content = io.BytesIO()
    pq.write_table(table, content)
    return io.BytesIO(content.getvalue())


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"x": [1]}),
        pa.table({PATH: ["b", "a"]}),
        pa.table({PATH: ["a", "a"]}),
        pa.table({PATH: ["a", None]}),
        pa.table({PATH: [1]}),
        pa.table({PATH: ["a"], "z": [1], "b": [1]}),
        pa.table({PATH: ["a"], "z": pa.array([1], pa.int8())}),
        pa.table({PATH: ["a"], "z": pa.array([1], pa.timestamp("s", "UTC"))}),
        pa.table({PATH: ["a"], "z": pa.array([1], pa.timestamp("ms"))}),
    ],
)
def test_other_tables_are_refused(table: pa.Table) -> None:
    with pytest.raises(StageError):
        read_annotations(parquet(table))


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(StageError, match=r"x\.parquet is not a table that lookalike wrote"):
        read_annotations(tmp_path / "x.parquet")
