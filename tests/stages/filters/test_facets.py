"""Facets, listings and places against loops in Python."""

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from stages.files.path_globs import FilterError
from stages.filters import facets
from stages.filters.attribute_table import SECONDS, AttributeTable
from stages.filters.facets import MOST_VALUES, count_facets, shown_columns
from stages.filters.picture_listing import (
    MOST_PLACES,
    SORTS,
    listed_files,
    listing_page,
    place_clusters,
    sorted_files,
)
from stages.filters.where_clause import parse_where
from stages.record.sources import Source
from tests.example_counts import examples
from tests.stages.filters.attribute_tables import attribute_table

_SCHEMA = pa.schema([("label", pa.string()), ("rating", pa.int64()), ("score", pa.float64()), ("mine", pa.bool_())])
_SCHEMA = _SCHEMA.append(pa.field("seen", SECONDS))

files = st.builds(
    Source,
    st.uuids().map(lambda each: f"{each}.jpg"),
    st.just("5eed"),
    st.integers(0, 3),
    st.just(2),
    st.just(1000),
    taken=st.sampled_from(["", "2024-01-01T10:00:00", "2024-01-01T11:00:00", "2019-05-05T00:00:00"]),
    coding=st.just(""),
    encoder=st.just(""),
    pixels=st.just(""),
    camera=st.sampled_from(["", "a", "b", "c"]),
)
said = st.fixed_dictionaries(
    {
        "label": st.sampled_from(["x", "y", None]),
        "rating": st.integers(-100, 100) | st.sampled_from([1 << 40, None]),
        "score": st.floats(allow_nan=True, allow_infinity=True) | st.none(),
        "mine": st.booleans() | st.none(),
        "seen": st.datetimes(datetime(1850, 1, 1), datetime(2150, 1, 1)).map(lambda each: each.replace(microsecond=0)),
    }
)
pictures = st.lists(st.lists(st.tuples(files, said), min_size=1, max_size=3), min_size=1, max_size=20)


def _table(pictures: list[list[tuple[Source, dict[str, Any]]]], segments: int = 2) -> AttributeTable:
    people = {source.path: words for each in pictures for source, words in each}
    return attribute_table([[source for source, _ in each] for each in pictures], people, _SCHEMA, segments)


def _values(table: AttributeTable, name: str, mask: Any) -> dict[Any, set[int]]:
    """The pictures of each value."""
    found = defaultdict(set)
    for row, value, inside in zip(table.rows.tolist(), table.column(name).to_pylist(), mask, strict=True):
        if inside:
            found[value].add(row)
    return found


@given(pictures, st.integers(0, 1 << 30))
@settings(max_examples=examples(40))
def test_a_facet_counts_the_pictures_of_each_value(made: Any, bits: int) -> None:
    table = _table(made)
    mask = np.array([bits >> at % 30 & 1 for at in range(len(table))], bool)
    for name in (*_SCHEMA.names, "camera", "width", "taken"):
        (facet,), values = count_facets(table, mask, [name]), _values(table, name, mask)
        assert facet["missing"] == len(values.pop(None, ()))
        if facet["type"] in ("text", "boolean"):
            counts = {each["value"]: each["pictures"] for each in facet["values"]}
            assert counts == {value: len(rows) for value, rows in values.items()}
            assert list(counts.values()) == sorted(counts.values(), reverse=True)
            continue
        assert bool(facet["bars"]) == bool(values)
        for bar in facet["bars"]:
            begin, end, last = bar["from"], bar["to"], bar is facet["bars"][-1]
            if facet["type"] == "date":
                begin = datetime.fromisoformat(begin)
                end = datetime.fromisoformat(end) + timedelta(hours=23, minutes=59, seconds=59)
            if facet["type"] == "date" or isinstance(begin, int):
                assert bar["pictures"] == len(
                    set().union(*(rows for each, rows in values.items() if begin <= each <= end))
                )
            elif last:
                assert end == max(values)


@given(pictures, st.sampled_from(SORTS), st.integers(1, 4))
@settings(max_examples=examples(40))
def test_a_listing_has_each_picture_once_in_order(made: Any, sort: str, limit: int) -> None:
    table = _table(made)
    mask = parse_where("width > 0", table.columns).files(table)
    order = sorted_files(table, sort)
    listed = listed_files(table, order[mask[order]])
    rows, after = [], None
    while True:
        page, after = listing_page(table, listed, after, limit)
        rows += [each.row for each in page]
        assert len(page) == limit or after is None
        if after is None:
            break
    values, path = table.column(sort.removeprefix("-")).to_pylist(), table.column("path").to_pylist()
    chosen = sorted((file for file in range(len(table)) if mask[file]), key=lambda file: path[file])
    chosen.sort(
        key=lambda file: values[file] or datetime(1, 1, 1) if "taken" in sort else values[file], reverse="-" in sort
    )
    chosen.sort(key=lambda file: values[file] is None)
    assert rows == list(dict.fromkeys(table.rows[chosen].tolist()))


def test_a_cursor_finds_its_picture_again() -> None:
    named = [[Source(f"{name}.jpg", "5eed")] for name in "abcd"]
    table, fewer = attribute_table(named), attribute_table(named[1:])
    _, after = listing_page(table, sorted_files(table, "name"), None, 2)
    assert after is not None
    page, _ = listing_page(fewer, sorted_files(fewer, "name"), after, 2)
    assert [each.path for each in page] == ["c.jpg", "d.jpg"]
    for bad in ("", "x", "2:gone.jpg", ":"):
        with pytest.raises(FilterError, match="after is not a cursor"):
            listing_page(table, sorted_files(table, "name"), bad, 2)


@given(st.lists(st.tuples(st.floats(-95, 95), st.floats(-185, 185)) | st.just((None, 1.0)), min_size=1, max_size=50))
@settings(max_examples=examples(40))
def test_places_are_counted_once(places: Any) -> None:
    sources = (Source(f"{at}.jpg", "5eed", latitude=each[0], longitude=each[1]) for at, each in enumerate(places))
    table = attribute_table([[each] for each in sources])
    known = [
        at for at, (north, east) in enumerate(places) if north is not None and abs(north) <= 90 and abs(east) <= 180
    ]
    clusters = place_clusters(table, np.ones(len(table), bool))
    assert sum(each["pictures"] for each in clusters) == len(known) and {each["row"] for each in clusters} <= set(known)


def test_many_places_are_clustered() -> None:
    places = ((at % 100 / 10, at // 100 / 10) for at in range(5000))
    sources = (Source(f"{at}.jpg", "5eed", latitude=each[0], longitude=each[1]) for at, each in enumerate(places))
    table = attribute_table([[each] for each in sources])
    found = place_clusters(table, np.ones(len(table), bool))
    assert 500 < len(found) <= MOST_PLACES and sum(each["pictures"] for each in found) == 5000


def test_a_facet_of_many_values_says_how_many_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    table = attribute_table([[Source(f"{number:03}.jpg", "5eed")] for number in range(200)])
    (facet,) = count_facets(table, np.ones(200, bool), ["name"])
    assert (len(facet["values"]), facet["more"], facet["cut"]) == (MOST_VALUES, 150, False)
    monkeypatch.setattr(facets, "MOST_DISTINCT", 100)
    (facet,) = count_facets(table, np.ones(200, bool), ["name"])
    assert (facet["more"], facet["cut"]) == (50, True)
    assert "name" not in shown_columns(table) and "camera" in shown_columns(table)
