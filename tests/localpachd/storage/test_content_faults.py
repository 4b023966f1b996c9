"""Faults of a commit's content against the definition, found by look-ups around new entries and by a full scan."""

from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from localpachd.database import Database
from localpachd.storage.content_faults import survey
from localpachd.storage.filesets import FileContent, FileSet, write_layer

Key = tuple[str, str]
Layer = dict[Key, int | None]
"""(path, tag) -> the size of the file written there, or None if it was removed."""

element = st.sampled_from(["a", "a-", "b"])
path = st.lists(element, min_size=1, max_size=3).map(lambda elements: "/" + "/".join(elements))
layer = st.dictionaries(st.tuples(path, st.sampled_from(["t1", "t2"])), st.none() | st.integers(0, 9), max_size=6)
FILLER: Layer = {(f"/z/{n:04}", "t1"): 1 for n in range(300)}


def write(db: Database, entries: Layer) -> int:
    rows = [(*key, None if size is None else FileContent(size, (bytes(32),))) for key, size in entries.items()]
    return db.write(lambda conn: write_layer(conn, rows))


def merged(layers: Sequence[Layer]) -> dict[Key, int]:
    together: Layer = {}
    for each in layers:
        together.update(each)
    return {key: size for key, size in together.items() if size is not None}


def sound(files: dict[Key, int]) -> bool:
    names = [name for name, _ in files]
    return len(set(names)) == len(names) and not any(one.startswith(f"{other}/") for one in names for other in names)


def surveyed(db: Database, below: Sequence[Layer], written: Sequence[Layer]) -> tuple[str, int]:
    under, over = [write(db, each) for each in below], [write(db, each) for each in written]
    with db.read() as conn:
        return survey(
            FileSet(conn, under), FileSet(conn, over), FileSet(conn, under + over), sum(merged(below).values())
        )


@pytest.mark.parametrize("filler", [{}, FILLER], ids=["everything read", "looked up"])
@given(below=layer, written=st.lists(layer, max_size=3))
def test_a_fault_is_found_exactly_where_there_is_one(
    db: Database, filler: Layer, below: Layer, written: list[Layer]
) -> None:
    if not sound(merged([below])):
        below = {}
    base: Layer = {**filler, **below}
    fault, size = surveyed(db, [base], written)
    whole = merged([base, *written])
    assert (fault == "") == sound(whole)
    assert size == sum(whole.values())


@pytest.mark.parametrize("filler", [{}, FILLER], ids=["everything read", "looked up"])
@pytest.mark.parametrize(
    ("below", "written", "fault"),
    [
        (
            {},
            {("/a", "d1"): 1, ("/a", "d2"): 1},
            "duplicate path output by different datums (/a from d1 and /a from d2)",
        ),
        ({("/a", "d1"): 1}, {("/a", "d2"): 1}, "duplicate path output by different datums (/a from d1 and /a from d2)"),
        ({("/a", "d1"): 1}, {("/a", "d1"): 2}, ""),
        ({("/a", "d1"): 1}, {("/a", "d1"): None, ("/a", "d2"): 2}, ""),
        ({("/a", "d1"): 1}, {("/a/b/c", "d1"): 2}, "file / directory path collision (/a/b/c)"),
        ({("/a/b/c", "d1"): 1}, {("/a", "d1"): 2}, "file / directory path collision (/a/b/c)"),
        ({("/a", "d1"): 1, ("/a-b", "d1"): 1}, {("/a/b", "d1"): 2}, "file / directory path collision (/a/b)"),
        ({("/a", "d1"): 1}, {("/ab/c", "d1"): 2}, ""),
        ({}, {}, ""),
    ],
)
def test_texts(db: Database, filler: Layer, below: Layer, written: Layer, fault: str) -> None:
    assert surveyed(db, [{**filler, **below}], [written])[0] == fault
