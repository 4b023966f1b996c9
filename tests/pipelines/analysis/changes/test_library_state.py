"""Thumbnails from tables of any version."""

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.analysis.changes.library_state import read_thumbnails
from stages.datum.contract import StageError


def test_only_ids_and_thumbnails_are_needed(tmp_path: Path) -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"id": ["a", "b", "c"], "other": [1, 2, 3], "thumbnail": [b"x", None, b"y"]}), file)
    assert read_thumbnails(file.getvalue()) == {"a": b"x", "c": b"y"}


@pytest.mark.parametrize("columns", [{"id": ["a"]}, {"thumbnail": [b"x"]}, {}])
def test_another_file_is_refused(columns: dict[str, list[object]]) -> None:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    with pytest.raises(StageError, match=r"the stream is not a table that lookalike wrote"):
        read_thumbnails(file.getvalue())


def test_thumbnails_beside_a_table_are_read_by_their_sizes() -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"id": ["a", "b", "c"], "thumbnail_size": [2, 0, 3]}), file)
    assert read_thumbnails(file.getvalue(), b"xxyyy") == {"a": b"xx", "c": b"yyy"}
    for wrong in (b"", b"xxyy"):
        with pytest.raises(StageError, match=r"is not the file of thumbnails that its table describes"):
            read_thumbnails(file.getvalue(), wrong)


def test_damage_is_refused() -> None:
    with pytest.raises(StageError, match="not a table"):
        read_thumbnails(b"PAR1")
