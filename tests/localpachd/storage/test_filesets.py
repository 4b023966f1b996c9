"""File sets against a model of plain dictionaries: merging, removing, ranges, tags, compaction."""

import math
from collections.abc import Sequence
from functools import partial
from sqlite3 import Connection

import pytest
from hypothesis import given, strategies as st

from localpachd import ids
from localpachd.database import Database
from localpachd.storage.filesets import FileContent, FileSet, TaggedFile, compact, write_layer

Entry = tuple[str, str, FileContent | None]
Model = dict[tuple[str, str], FileContent | None]

# "-" and "." sort before "/", "0" after it; the last two sort differently in UTF-16.
names = st.text(st.sampled_from(["a", "b", "-", ".", "/", "0", "\uffff", "\U00010000"]), min_size=1, max_size=4)
tags = st.sampled_from(["default", "d1", "d2"])


def content(number: int) -> FileContent:
    return FileContent(number, tuple(ids.chunk_hash(bytes([number, place])) for place in range(number)))


contents = st.none() | st.integers(0, 3).map(content)
entries = st.tuples(names.map("/".__add__), tags, contents)
layer_lists = st.lists(st.lists(entries, max_size=8), max_size=6)


def write(db: Database, layers: Sequence[Sequence[Entry]]) -> list[int]:
    return [db.write(partial(write_layer, entries=iter(layer))) for layer in layers]


def merge(layers: Sequence[Sequence[Entry]]) -> Model:
    model: Model = {}
    for layer in layers:
        model.update({(path, tag): content for path, tag, content in layer})
    return model


def files(model: Model) -> list[TaggedFile]:
    keys = sorted(model, key=lambda key: (key[0].encode(), key[1]))
    return [TaggedFile(*key, found) for key in keys if (found := model[key]) is not None]


@given(layer_lists)
def test_the_newest_entry_of_a_path_and_tag_counts(db: Database, layers: list[list[Entry]]) -> None:
    refs = write(db, layers)
    model = merge(layers)
    expected = files(model)
    with db.read() as conn:
        fs = FileSet(conn, refs)
        assert list(fs.walk()) == expected
        assert fs.weight() >= len(expected)
        assert [(path, tag, found) for path, tag, found in fs.entries()] == sorted(
            ((*key, found) for key, found in model.items()), key=lambda entry: (entry[0].encode(), entry[1])
        )
        for tag in ("default", "d1", "d2", "none"):
            of_tag = [file for file in expected if file.tag == tag]
            assert list(fs.of_tag(tag)) == list(fs.tagged(tag).walk()) == of_tag
            assert list(fs.tagged(tag).of_tag(tag)) == of_tag
        for path, tag in model:
            at_path = [file for file in expected if file.path == path]
            assert fs.get(path) == at_path
            assert fs.find(path, tag) == next((file for file in at_path if file.tag == tag), None)
            assert fs.tagged(tag).get(path) == [file for file in at_path if file.tag == tag]
        assert fs.get("/never") == []


@given(layer_lists, names.map("/".__add__) | st.just("/"), st.none() | names.map("/".__add__), st.none() | names)
def test_ranges(db: Database, layers: list[list[Entry]], prefix: str, lower: str | None, upper: str | None) -> None:
    expected = [file for file in files(merge(layers)) if file.path.startswith(prefix)]
    refs = write(db, layers)
    with db.read() as conn:
        fs = FileSet(conn, refs)
        inside = [file for file in expected if file.path.startswith(prefix.removesuffix("/") + "/")]
        assert list(fs.under(prefix)) == list(fs.under(prefix.removesuffix("/") + "/")) == inside
        if lower is not None:
            expected = [file for file in expected if file.path.encode() >= lower.encode()]
        if upper is not None:
            expected = [file for file in expected if file.path.encode() < upper.encode()]
        assert list(fs.walk(prefix, lower, upper)) == expected


@given(layer_lists)
def test_compacting_changes_no_view_and_no_layer(db: Database, layers: list[list[Entry]]) -> None:
    refs = write(db, layers)
    with db.read() as conn:
        before = [list(FileSet(conn, [ref]).entries()) for ref in refs]
    compacted = db.write(lambda conn: compact(conn, refs))
    with db.read() as conn:
        assert list(FileSet(conn, compacted).walk()) == files(merge(layers))
        assert [list(FileSet(conn, [ref]).entries()) for ref in refs] == before
        sizes = [FileSet(conn, [ref]).weight() for ref in compacted]
    assert all(size > sum(sizes[place + 1 :]) for place, size in enumerate(sizes))
    assert db.write(lambda conn: compact(conn, compacted)) == compacted


@given(layer_lists, layer_lists)
def test_layers_on_top_of_others_keep_their_removals(
    db: Database, below: list[list[Entry]], above: list[list[Entry]]
) -> None:
    under, over = write(db, below), write(db, above)
    compacted = db.write(lambda conn: compact(conn, over, bottom=False))
    with db.read() as conn:
        assert list(FileSet(conn, [*under, *compacted]).walk()) == files(merge([*below, *above]))
        assert list(FileSet(conn, compacted).entries()) == list(FileSet(conn, over).entries())


def test_a_layer_listed_twice_counts_at_its_newest_position(db: Database) -> None:
    one, two = write(db, [[("/a", "default", content(1))], [("/a", "default", content(2))]])
    with db.read() as conn:
        assert FileSet(conn, [one, two, one]).get("/a") == [TaggedFile("/a", "default", content(1))]


def test_of_two_entries_in_one_layer_the_later_counts(db: Database) -> None:
    (ref,) = write(db, [[("/a", "default", None), ("/a", "default", content(2))]])
    with db.read() as conn:
        assert FileSet(conn, [ref]).get("/a") == [TaggedFile("/a", "default", content(2))]
        assert FileSet(conn, [ref]).weight() == 1


def test_no_layers_no_files(db: Database) -> None:
    with db.read() as conn:
        fs = FileSet(conn, ())
        assert list(fs.walk()) == fs.get("/a") == list(fs.of_tag("default")) == []
        assert list(fs.entries()) == []
    assert db.write(lambda conn: compact(conn, ())) == ()
    empty = write(db, [[], []])
    assert db.write(lambda conn: compact(conn, empty)) == ()


def test_more_layers_than_one_query_takes(db: Database) -> None:
    layers = [[(f"/{n % 7}", "default", None if n % 5 == 0 else content(n % 4))] for n in range(620)]
    refs = write(db, layers)
    with db.read() as conn:
        fs = FileSet(conn, refs)
        assert list(fs.walk()) == list(fs.of_tag("default")) == files(merge(layers))
        assert [fs.get(f"/{n}") for n in range(7)] == [
            [file for file in files(merge(layers)) if file.path == f"/{n}"] for n in range(7)
        ]
    compacted = db.write(lambda conn: compact(conn, refs))
    with db.read() as conn:
        assert list(FileSet(conn, compacted).walk()) == files(merge(layers))


def test_growing_by_single_files_keeps_few_layers_and_little_rewriting(db: Database) -> None:
    count = 300
    first = db.write(lambda conn: conn.execute("SELECT max(id) FROM layers").fetchone()[0]) or 0
    layers: tuple[int, ...] = ()
    for n in range(count):
        (ref,) = write(db, [[(f"/{n * 37 % count:04}", "default", content(1))]])
        grown = (*layers, ref)
        layers = db.write(partial(compact, layers=grown))
        assert len(layers) <= math.log2(n + 1) + 1
    with db.read() as conn:
        written = conn.execute("SELECT sum(entries) FROM layers WHERE id > ?", (first,)).fetchone()[0]
        assert sum(1 for _ in FileSet(conn, layers).walk()) == count
    assert written <= count * (math.log2(count) + 1)


def test_a_deleted_layer_is_an_error(db: Database) -> None:
    with pytest.raises(KeyError, match="was deleted"):
        db.write(lambda conn: compact(conn, (10**9,)))


def test_a_file_set_is_read_while_the_next_is_written(db: Database) -> None:
    refs = write(db, [[(f"/{n:03}", "default", content(1)) for n in range(200)]])

    def copy(conn: Connection) -> int:
        fs = FileSet(conn, refs)
        return write_layer(conn, ((file.path + "x", file.tag, file.content) for file in fs.walk()))

    copied = db.write(copy)
    with db.read() as conn:
        assert [file.path for file in FileSet(conn, [copied]).walk()] == [f"/{n:03}x" for n in range(200)]
