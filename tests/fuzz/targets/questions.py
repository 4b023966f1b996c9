"""Questions to the service over HTTP: their JSON, their parameters in a URL, and filters of paths."""

import re
from collections.abc import Iterator
from urllib.parse import parse_qsl

import pyarrow as pa
import pyarrow.compute as pc

from stages.files.path_globs import FilterError, is_glob, regular_expression
from stages.files.question import QuestionError
from stages.files.tables.parquet import stored_text
from stages.filters.where_clause import parse_where
from stages.record.sources import Source
from stages.serving.follow.refusals import Refusal
from stages.serving.http.request_parser import CLASSIFY, SEARCH, RequestParser
from tests.fuzz.target import Target, text
from tests.stages.filters.attribute_tables import attribute_table

_FORMS: tuple[RequestParser, ...] = (SEARCH, CLASSIFY)  # type: ignore[type-arg]
_UPLOADS = 2
_MOST_TRIED = 6
"""Wildcards up to which Python's expressions, which try one way to match after the other, are quick."""
_ATTRIBUTES = attribute_table(
    [[Source("a/b.jpg", "5eed", 640, 480, 1000, "2024-02-29T12:00:00", camera="Canon")], [Source("x", "5eed")]]
)
_PATHS = pa.array(["a/b.jpg", "cats/siam.png", "x", "a-b/[c]/d.jpeg"])


def _json(data: bytes) -> None:
    for form in _FORMS:
        try:
            asked, _ = form.from_json(data)
            assert all(each.wanted > 0 for each in asked)
            for each in asked:
                each.asked(_UPLOADS)
        except (Refusal, QuestionError) as reason:
            assert getattr(reason, "status", 400) == 400
            assert str(reason)
            str(reason).encode()


def _url(data: bytes) -> None:
    parameters = parse_qsl(text(data), keep_blank_values=True)
    for form in _FORMS:
        try:
            form.from_parameters(parameters).asked(1)
        except (Refusal, QuestionError) as reason:
            assert str(reason)


def _filter(data: bytes) -> None:
    """RE2 reads every expression that is made of a pattern, or says that it is too complicated."""
    given = text(data)
    try:
        if not is_glob(given):
            return
        expression = regular_expression(stored_text(given))
    except FilterError as reason:
        assert str(reason)
        return
    try:
        found = pc.match_substring_regex(_PATHS, expression).to_pylist()
    except pa.ArrowInvalid as error:
        assert "too large" in str(error), error
        return
    if len(re.findall(r"[*{]", given)) > _MOST_TRIED:
        return
    python = re.compile(expression.replace(r"\z", r"\Z"))
    assert found == [python.search(path) is not None for path in _PATHS.to_pylist()]


def _where(data: bytes) -> None:
    """A filter by attributes is a mask, the same one twice, or is refused in a sentence."""
    given = text(data)
    try:
        found = parse_where(given, _ATTRIBUTES.columns).files(_ATTRIBUTES)
    except FilterError as reason:
        assert str(reason) and "\n" not in str(reason)
        return
    assert found.shape == (len(_ATTRIBUTES),) and found.dtype == bool
    assert (parse_where(given, _ATTRIBUTES.columns, lenient=True).files(_ATTRIBUTES) == found).all()


def _bodies() -> Iterator[bytes]:
    yield b'{"k": 3, "metric": "cosine", "filter": "cats/*", "max_distance": 0.5, "exact": true, "combine": "all"}'
    yield b'{"pictures": [{"upload": 0, "box": [0, 0, 0.5, 1]}, {"url": "https://a.example/b.jpg"}], "top": 2}'
    yield b'{"requests": [{"id": "%s"}, {"url": "http://a"}]}' % (b"0" * 64)


_WORDS = tuple(
    f'"{each}"'.encode()
    for each in ("k", "top", "pictures", "requests", "box", "id", "url", "upload", "filter", "metric", "exact")
)

TARGETS = (
    Target("questions", _json, _bodies, (*_WORDS, b"1e400", b"-1", b"null", b"true", b'"\\ud800"'), 600),
    Target(
        "parameters-of-urls",
        _url,
        lambda: (b"k=3&metric=cosine&filter=a%2F*&max_distance=0.5&exact=1", b"box=0,0,1,.5&top=2&url=http%3A//a"),
        (b"&k=", b"&box=", b"&top=", b"&exact=", b"&max_distance=", b"nan", b"inf", b"1e999", b"%00"),
        300,
    ),
    Target(
        "filters-of-paths",
        _filter,
        lambda: (b"cats/*.png", b"**/[!a-c]?.{jpg,png}", b"a\\*b[]]", b"{a,{b,c}}/**"),
        (b"**/", b"**", b"{", b"}", b",", b"[!", b"]", b"\\", b"[]", b"a-z", b"[a&&b]", b"[[:x:]]"),
        120,
    ),
    Target(
        "filters-by-attributes",
        _where,
        lambda: (
            b"camera LIKE 'Can%' AND taken >= '2024-01-01' OR NOT width / 2 IN (320, NULL)",
            b"lower(name) || '!' = 'b.jpg!' AND year(taken) BETWEEN 2020 AND 2025 AND (bytes IS NOT NULL) IS TRUE",
            b"path ILIKE 'A!%%' ESCAPE '!' AND round(abs(-aspect), 1) % 3 <> 1e3",
        ),
        tuple(
            each.encode()
            for each in (
                *("AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "ILIKE", "ESCAPE", "IS NULL", "TRUE", "NULL", "||"),
                *("(", ")", "'", '"', "--", "/*", ";", "%", "_", "::", "<=", "<>", "SELECT", "CASE", "CAST(", "now()"),
                *("camera", "width", "taken", "path", "lower(", "round(", "year(", "'2024-01-01'", "1e308", "0x1"),
            )
        ),
        200,
    ),
)
