"""Filters by attributes against SQLite, and what they refuse."""

import math
import sqlite3
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from stages.files.path_globs import FilterError
from stages.filters.attribute_table import SECONDS, AttributeTable
from stages.filters.where_clause import DEEPEST, MOST_LISTED, parse_where
from stages.record.sources import Source
from tests.example_counts import examples
from tests.stages.filters.attribute_tables import attribute_table

_SCHEMA = pa.schema(
    [
        ("label", pa.string()),
        ("rating", pa.int64()),
        ("score", pa.float64()),
        ("mine", pa.bool_()),
        ("seen", SECONDS),
    ]
)
_TEXTS = ["path", "folder", "name", "camera", "label"]
_NUMBERS = ["width", "height", "bytes", "rating", "score"]
_WHOLE = ["width", "height", "bytes", "rating"]
_DATES = ["taken", "seen"]
_WORDS = ["", "a", "b", "ab", "aB", "cat", "Canon EOS", "a%b", "a_b", "x/y", "it's", "é", "Ä\n1"]
_DAYS = ["2019-02-28", "2020-02-29", "2023-12-31", "2024-01-01"]

words = st.sampled_from(_WORDS)
whole = st.integers(-3, 40) | st.sampled_from([0, 1 << 40])
reals = st.sampled_from([-1.5, 0.0, 0.5, 2.0, 2.5, 1e6])
moments = st.builds("{}T{:02}:00:00".format, st.sampled_from(_DAYS), st.integers(0, 23))


class Both(NamedTuple):
    """A piece of a filter in our language, and in SQLite's."""

    ours: str
    theirs: str

    @classmethod
    def of(cls, form: str, *parts: "Both") -> "Both":
        """The pieces in a form that both languages have."""
        return cls(form.format(*(each.ours for each in parts)), form.format(*(each.theirs for each in parts)))


def same(text: str) -> Both:
    return Both(text, text)


def quoted(text: str) -> Both:
    return same("'{}'".format(text.replace("'", "''")))


def texts() -> st.SearchStrategy[Both]:
    leaves = st.sampled_from(_TEXTS).map(same) | words.map(quoted)
    return st.recursive(
        leaves,
        lambda inner: (
            st.builds(Both.of, st.sampled_from(["lower({})", "upper({})"]), inner)
            | st.builds(Both.of, st.just("({} || {})"), inner, inner)
        ),
        max_leaves=3,
    )


def numbers() -> st.SearchStrategy[Both]:
    leaves = st.sampled_from(_NUMBERS).map(same) | whole.map(str).map(same) | reals.map(str).map(same)
    real = leaves.map(lambda each: Both(each.ours, f"CAST({each.theirs} AS REAL)"))
    of_whole = st.sampled_from(_WHOLE).map(same)
    calculated = st.recursive(
        real,
        lambda inner: (
            st.builds(Both.of, st.sampled_from(["({} + {})", "({} - {})", "({} * {})", "({} / {})"]), inner, inner)
            | st.builds(Both.of, st.sampled_from(["abs({})", "(- {})"]), inner)
            | st.builds(Both.of, st.just("({} % {})"), of_whole, of_whole)
            | st.builds(Both.of, st.just("length({})"), texts())
            | st.builds(_part_of_date, st.sampled_from([("year", "%Y"), ("month", "%m"), ("day", "%d")]), dates())
        ),
        max_leaves=4,
    )
    return leaves | calculated


def dates() -> st.SearchStrategy[Both]:
    return st.sampled_from(_DATES).map(same)


def _part_of_date(part: tuple[str, str], date: Both) -> Both:
    return Both(f"{part[0]}({date.ours})", f"CAST(strftime('{part[1]}', {date.theirs}) AS INTEGER)")


def date_literals() -> st.SearchStrategy[Both]:
    written = st.sampled_from(["'{}'", "'{} 00:00'", "'{}T00:00:00'", "DATE '{}'", "TIMESTAMP '{} 00:00:00'"])
    days = st.builds(lambda form, day: Both(form.format(day), f"'{day}T00:00:00'"), written, st.sampled_from(_DAYS))
    return days | moments.map(lambda each: same(f"'{each}'"))


_COMPARED = st.sampled_from(["{} = {}", "{} <> {}", "{} < {}", "{} <= {}", "{} > {}", "{} >= {}"])
_BETWEEN = st.sampled_from(["{} BETWEEN {} AND {}", "{} NOT BETWEEN {} AND {}"])
_NULLS = st.sampled_from(["{} IS NULL", "{} IS NOT NULL"])


def conditions() -> st.SearchStrategy[Both]:
    null = st.just(same("NULL"))
    leaves = [
        st.sampled_from(["mine", "TRUE", "FALSE", "NULL", "mine IS TRUE", "mine IS NOT FALSE", "mine = TRUE"]).map(
            same
        ),
        st.builds(_liked, texts(), st.sampled_from(["LIKE", "NOT LIKE", "ILIKE"]), st.text("ab%_/.é", max_size=5)),
    ]
    for values, constants in (
        (texts(), words.map(quoted) | null),
        (numbers(), whole.map(str).map(same) | reals.map(str).map(same) | null),
        (dates(), date_literals()),
    ):
        leaves += [
            st.builds(Both.of, _COMPARED, values, values | constants),
            st.builds(Both.of, _BETWEEN, values, constants, constants),
            st.builds(Both.of, _NULLS, values),
            st.builds(_listed, values, st.sampled_from(["IN", "NOT IN"]), st.lists(constants, min_size=1, max_size=6)),
        ]
    return st.recursive(
        st.one_of(leaves),
        lambda inner: (
            st.builds(Both.of, st.sampled_from(["({} AND {})", "({} OR {})", "({} AND NOT {})"]), inner, inner)
            | st.builds(Both.of, st.just("NOT ({})"), inner)
        ),
        max_leaves=6,
    )


def _liked(text: Both, how: str, pattern: str) -> Both:
    if how == "ILIKE":
        return Both(f"{text.ours} ILIKE '{pattern}'", f"lower({text.theirs}) LIKE lower('{pattern}')")
    return Both.of(f"{{}} {how} '{pattern}'", text)


def _listed(value: Both, how: str, listed: list[Both]) -> Both:
    return Both.of(f"{{}} {how} ({', '.join(['{}'] * len(listed))})", value, *listed)


def sources() -> st.SearchStrategy[Source]:
    return st.builds(
        Source,
        st.builds(
            "{}{}".format, st.sampled_from(["", "a/", "x/y/", "x/"]), st.sampled_from(["1", "b.jpg", "aB", "é", "a%b"])
        ),
        st.just("5eed" * 16),
        coding=st.just(""),
        encoder=st.just(""),
        pixels=st.just(""),
        width=st.integers(0, 5),
        height=st.integers(0, 5),
        bytes=st.sampled_from([0, 1, 1 << 40]),
        taken=st.just("") | moments,
        camera=words,
    )


rows = st.lists(
    st.tuples(
        st.lists(sources(), min_size=1, max_size=2),
        words.filter(bool) | st.none(),
        whole | st.none(),
        reals | st.just(math.nan) | st.none(),
        st.booleans() | st.none(),
        moments | st.none(),
    ),
    min_size=1,
    max_size=12,
)


class Oracle:
    """The same table in SQLite."""

    def __init__(self, pictures: list[list[Source]], said: dict[str, dict[str, Any]]) -> None:
        self._database = sqlite3.connect(":memory:")
        self._database.execute("PRAGMA case_sensitive_like=ON")
        self._database.create_function("lower", 1, lambda text: text and text.lower())
        self._database.create_function("upper", 1, lambda text: text and text.upper())
        self._database.execute(
            "CREATE TABLE t(picture INTEGER, path TEXT, folder TEXT, name TEXT, camera TEXT, taken TEXT, "
            "width INTEGER, height INTEGER, bytes INTEGER, label TEXT, rating INTEGER, score REAL, mine INTEGER, "
            "seen TEXT)"
        )
        for number, each in enumerate(pictures):
            for source in each:
                known = said.get(source.path, {})
                folder, _, name = source.path.rpartition("/")
                facts = (source.camera, source.taken, source.width, source.height, source.bytes)
                people = [known.get(column) for column in _SCHEMA.names]
                values = [number, source.path, folder or None, name, *(fact or None for fact in facts), *people]
                self._database.execute(f"INSERT INTO t VALUES ({', '.join('?' * len(values))})", values)

    def pictures(self, where: str) -> set[int]:
        return {number for (number,) in self._database.execute(f"SELECT picture FROM t WHERE {where}")}


@given(rows, conditions(), st.integers(1, 3))
@settings(max_examples=examples(150))
def test_a_filter_finds_what_sqlite_finds(rows: list[Any], condition: Both, segments: int) -> None:
    pictures = [row[0] for row in rows]
    said = {row[0][0].path: dict(zip(_SCHEMA.names, row[1:], strict=True)) for row in rows}
    stored = {
        path: each | {"seen": each["seen"] and datetime.fromisoformat(each["seen"])} for path, each in said.items()
    }
    table = attribute_table(pictures, stored, _SCHEMA, segments)
    found = table.pictures_of(parse_where(condition.ours, table.columns).files(table))
    assert set(found.nonzero()[0].tolist()) == Oracle(pictures, said).pictures(condition.theirs), condition


_TABLE = attribute_table(
    [
        [Source("trip/a.jpg", "5eed", 640, 480, 1000, "2024-01-31T18:30:00", camera="Canon EOS")],
        [Source("b.png", "5eed")],
    ],
    {"trip/a.jpg": {"label": "cat", "rating": (1 << 63) - 1, "score": 2.5, "mine": True, "seen": datetime(2024, 5, 1)}},
    _SCHEMA,
)


def _found(where: str, table: AttributeTable = _TABLE) -> list[int]:
    return [int(each) for each in table.pictures_of(parse_where(where, table.columns).files(table)).nonzero()[0]]


@pytest.mark.parametrize(
    "condition",
    [
        "path {} LIKE 'b%'",
        "path {} ILIKE 'B%'",
        "path {} LIKE 'b!.%' ESCAPE '!'",
        "path {} IN ('b.png', 'c')",
        "path {} BETWEEN 'b' AND 'c'",
        "camera IS {} NULL",
    ],
)
def test_not_before_an_operator_finds_the_other_files(condition: str) -> None:
    assert (_found(condition.format("")), _found(condition.format("NOT"))) == ([1], [0])


@pytest.mark.parametrize(
    "where",
    [
        "rating * rating > 0 OR TRUE",
        "length(camera) IN (9, 2, 3, 4, 5) AND year(taken) IN (2024.0, 1, 2, 3, 4)",
        "(width / 0) IS NULL",
        "(width % 0) IS NULL",
        "(1e308 * 1e308) IS NULL",
        "round(score) = 3 AND round(-score) = -3 AND round(1.25, 1) = 1.3 AND round(1e300, 2) = 1e300",
        "aspect > 1.33 AND aspect < 1.34",
        "folder = 'trip' AND name = 'a.jpg' AND NOT folder LIKE '%/%'",
        "year(taken) = 2024 AND month(taken) = 1 AND day(taken) = 31",
        "taken BETWEEN '2024-01-31' AND '2024-01-31 18:30:00'",
        "taken >= DATE '2024-01-31' AND taken = timestamp '2024-01-31 18:30:00' AND year(DATE '2024-02-29') = 2024",
        "seen BETWEEN DATE '2024-05-01' AND CAST('2024-05-02' AS DATE) AND seen IN (DATE '2024-05-01', '2024-05-02')",
        "label IN ('cat', 'dog') AND camera ILIKE 'canon%'",
        "\"label\" = 'cat' AND LABEL = 'cat' AND rating = 9223372036854775807",
        "camera || ' ' || label = 'Canon EOS cat'",
        "mine IS TRUE AND mine IS NOT FALSE AND (mine IS NULL) = FALSE",
    ],
)
def test_a_filter_of_every_operation(where: str) -> None:
    assert 0 in _found(where)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("camra = 'x'", "there is no column camra: is it camera?"),
        ('camera = "Canon"', "there is no column canon; a text needs single quotes, as in camera = 'Canon'"),
        ("camera = Canon", "there is no column canon; a text needs single quotes"),
        ("year = 2024", "and `lookalike attributes add` gives others"),
        ("taken = 2024", "year(taken) is a number"),
        ("taken > '2024'", "as in year(taken) = 2024"),
        ("WHERE width > 1", "write it as SQL's WHERE, without that word, such as"),
        ("camera IN 'a'", "IN needs a list of values"),
        ("width LIKE 'a'", "LIKE takes a text, and width is a number"),
        ("camera > 5", "camera is a text and 5 is a number: they cannot be compared"),
        ("taken > 'May'", "taken is a date, and 'May' is not: write '2024-01-31'"),
        ("taken > '2024-02-30'", "taken is a date, and '2024-02-30' is not"),
        ("width", "width is a number, not a condition: compare it"),
        ("mine > FALSE", "mine is true or false: compare it with = or <>"),
        ("camera LIKE label", "LIKE needs a text in quotes as its pattern"),
        ("camera LIKE 'a' ESCAPE 'bc'", "ESCAPE needs one character"),
        ("camera LIKE 'a!' ESCAPE '!'", "the pattern a! ends with its escape character"),
        (f"camera LIKE '{'%a' * 33}'", "the pattern has 33 times %; use it at most 32 times"),
        ("width IN (height)", "the values of width IN must be written out"),
        ("width IN ()", "IN needs a list of values"),
        ("now() > taken", "the filter cannot use now(): it knows ="),
        ("random() > 1", "the filter cannot use rand()"),
        ("taken < current_timestamp", "the filter cannot use current_timestamp()"),
        ("read_text('/etc/passwd') = ''", "the filter cannot use read_text()"),
        ("path IN (SELECT 1)", "IN needs a list of values"),
        ("EXISTS (SELECT 1)", "the filter cannot use exists()"),
        ("t.path = 'a'", "the filter cannot use the name t.path with a point"),
        ("CAST(width AS TEXT) = '1'", "the filter cannot use cast()"),
        ("taken > CAST(camera AS DATE)", "the filter cannot use cast(): it knows ="),
        ("taken > TIMESTAMP WITH TIME ZONE '2024-01-31'", "and dates as DATE '2024-01-31'"),
        ("taken > DATE '2024-02-30'", "DATE is a date, and '2024-02-30' is not: write '2024-01-31'"),
        ("taken > DATE '2024-01-31 18:30:00'", "DATE is a date, and '2024-01-31 18:30:00' is not"),
        ("taken > TIMESTAMP '2024-01-31 18:30:00+02:00'", "TIMESTAMP is a date, and "),
        ("camera > DATE '2024-01-31'", "camera is a text and '2024-01-31' is a date: they cannot be compared"),
        ("camera COLLATE nocase = 'a'", "the filter cannot use collate()"),
        ("width = 1 -- all", "the filter holds a comment"),
        ("width = /* all */ 1", "the filter holds a comment"),
        ("width = 1; DROP TABLE t", "the filter cannot be read near DROP"),
        ("width = 1 ORDER BY width", "the filter cannot be read near ORDER"),
        ("camera = 'x", "a quotation mark without its partner"),
        ("width = 1e999", "the number 1e999 is too large"),
        (" ", "the filter is empty"),
        ("(" * (DEEPEST + 1), "the filter is nested too deeply"),
        ("NOT " * 3000 + "mine", "the filter has 12,004 characters; use at most 8,000"),
        ("NOT " * 1900 + "mine", "the filter is nested too deeply"),
        (f"width IN ({', '.join('1' * (MOST_LISTED + 1))})", "IN has 1,001 values; use at most 1,000"),
        (" OR ".join(["width=1"] * 600), "the filter has 601 operations; use at most 400"),
        (" OR ".join(["path LIKE 'a'"] * 17), "the filter has 17 patterns of LIKE; use at most 16"),
    ],
)
def test_what_a_filter_cannot_be_is_said_in_words(where: str, words: str) -> None:
    with pytest.raises(FilterError) as refused:
        parse_where(where, _TABLE.columns)
    assert str(refused.value).startswith(words) or words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_column_that_a_segment_lacks_is_null_there() -> None:
    clause = parse_where("weather = 'sunny' OR width = 640", _TABLE.columns, lenient=True)
    assert clause.files(_TABLE).tolist() == [True, False]
    assert clause.unknown == {"weather"}
    assert parse_where("NOT weather LIKE 'a%'", _TABLE.columns, lenient=True).files(_TABLE).tolist() == [False, False]
    assert parse_where("lower(weather) IS NULL", _TABLE.columns, lenient=True).files(_TABLE).tolist() == [True, True]


def test_a_slow_pattern_takes_linear_time() -> None:
    """Thirty-two wildcards, on texts for which expressions that try one way after the other would take for ever."""
    table = attribute_table([[Source("a" * 2000 + str(number), "5eed")] for number in range(50)])
    assert _found(f"path LIKE '{'%a' * 32}b'", table) == []
