"""Merged segments equal one search of the whole library."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, strategies as st

from stages.datum.contract import StageError
from stages.files.packs import Rejection
from stages.files.tables.image_table import ImageTable
from stages.files.tables.neighbour_table import NeighbourTable
from stages.quality.entry_answers import EntryAnswers, QueryMatch, SegmentReader, json_lines, merge
from stages.record.origin import Origin
from stages.record.sources import Source
from tests.stages.image_tables import unseen

QUERY, OTHER = "0" * 64, "1" * 64
MODEL = "a" * 64


def picture(number: int) -> str:
    return hashlib.sha256(b"%d" % number).hexdigest()


def source(path: str) -> Source:
    return Source(path, hashlib.sha256(path.encode()).hexdigest())


def segment(
    rows: Sequence[tuple[str, str, float, Sequence[Source]]],
    k: int = 3,
    model: str = MODEL,
    metric: str = "euclidean",
    fit: str = "pad",
) -> SegmentReader:
    """Writes a segment's table of (query, id, distance, sources), in any order."""
    ordered = sorted(rows, key=lambda row: (row[0], row[2], row[1]))
    queries = [row[0] for row in ordered]
    table = NeighbourTable(
        queries=queries,
        ranks=np.array([queries[:n].count(query) for n, query in enumerate(queries)], np.int32),
        ids=[row[1] for row in ordered],
        distances=np.array([row[2] for row in ordered], np.float32),
        sources=[row[3] for row in ordered],
        thumbnails=[b"jpeg" for _ in ordered],
        origin=Origin(model, fit, backbone="a net at 96 px"),
        metric=metric,
        k=k,
    )
    with TemporaryDirectory() as directory:
        path = Path(directory) / "segment.parquet"
        table.write(path)
        content = path.read_bytes()
    return lambda wanted: NeighbourTable.read(BytesIO(content), wanted)


def asked(*queries: str, model: str = MODEL, fit: str = "pad", backend: str = "tensorflow") -> ImageTable:
    return ImageTable(
        ids=queries,
        sources=[[source(f"q/{query[0]}.png")] for query in queries],
        thumbnail_sizes=[1] * len(queries),
        hashes=[0] * len(queries),
        **unseen(len(queries)),
        origin=Origin(model, fit, 96, 4, "a net at 96 px", backend=backend),
    )


distances = st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0, 3.0])
library = st.dictionaries(st.integers(0, 40).map(picture), distances, max_size=25)


@given(library, st.integers(1, 8), st.randoms(use_true_random=False))
def test_segments_in_any_order_are_one_library(near: dict[str, float], k: int, random: Random) -> None:
    segments = []
    for digit in sorted({id[0] for id in near}):
        rows = [(QUERY, id, near[id], [source(id)]) for id in near if id[0] == digit]
        best = sorted(rows, key=lambda row: (row[2], row[1]))[:k]
        segments.append(segment(best, k))
    random.shuffle(segments)
    merged = merge("entry", k, asked(QUERY), segments)
    expected = sorted(near, key=lambda id: (near[id], id))[:k]
    assert [match.id for match in merged.answers[0].matches] == expected
    assert [match.distance for match in merged.answers[0].matches] == [float(np.float32(near[id])) for id in expected]
    assert merged.searched == bool(near)
    assert merged.library_size == (len(near) if 0 < len(near) < k else None)


def test_a_picture_comes_before_others_at_distance_zero() -> None:
    before = segment([(OTHER, id, 0.0, [source(id)]) for id in ("00" * 32, "01" * 32)])
    itself = segment([(OTHER, OTHER, 0.0, [source("itself")])])
    matches = merge("entry", 2, asked(OTHER), [before, itself]).answers[0].matches
    assert [match.id for match in matches] == [OTHER, "00" * 32]


def test_equal_pictures_are_one_neighbour_with_all_sources() -> None:
    first = segment([(QUERY, picture(1), 0.5, [source("b.jpg")]), (QUERY, picture(2), 0.75, [source("c.jpg")])])
    second = segment([(QUERY, picture(1), 0.5, [source("a.jpg"), source("b.jpg")])])
    merged = merge("entry", 3, asked(QUERY), [first, second])
    assert merged.answers[0].matches == (
        QueryMatch(picture(1), 0.5, (source("a.jpg"), source("b.jpg")), b"jpeg"),
        QueryMatch(picture(2), 0.75, (source("c.jpg"),), b"jpeg"),
    )
    assert merged.library_size == 2


def test_either_side_may_be_missing() -> None:
    only_queries = merge("entry", 3, asked(QUERY, OTHER), [])
    assert not only_queries.searched
    assert [answer.matches for answer in only_queries.answers] == [(), ()]
    assert only_queries.library_size is None

    only_search = merge("entry", 1, None, [segment([(QUERY, picture(1), 0.5, [source("a.jpg")])])])
    assert only_search.searched
    assert (only_search.answers[0].sources, only_search.answers[0].thumbnail) == ((), None)
    assert only_search.answers[0].matches[0].id == picture(1)

    neither = merge("entry", 3, asked(), [], [Rejection("bad.jpg", "preprocess", "empty file")])
    bad = Rejection("bad.jpg", "preprocess", "empty file")
    assert neither == EntryAnswers("entry", 3, Origin(MODEL, "pad", 96, 4, "a net at 96 px"), None, (), (bad,))


ROW = (QUERY, picture(1), 0.5, [source("a.jpg")])


@pytest.mark.parametrize(
    ("queries", "segments", "reason"),
    [
        (asked(QUERY, fit="crop"), [segment([ROW])], "FIT=crop and with FIT=pad cannot be mixed: set the same FIT in"),
        (
            asked(QUERY),
            [segment([ROW]), segment([ROW], model="b" * 64)],
            f"a net at 96 px {'a' * 64} and a net at 96 px {'b' * 64}.*lookalike deploy --reprocess search",
        ),
        (asked(QUERY, model="b" * 64), [segment([ROW])], "two models"),
        (asked(QUERY, backend="torch"), [segment([ROW])], "aa on PyTorch and a net at 96 px a"),
        (None, [segment([ROW]), segment([ROW], metric="cosine")], r"euclidean and cosine.*--reprocess search"),
    ],
)
def test_two_fits_models_or_metrics_are_not_mixed(
    queries: ImageTable | None, segments: list[SegmentReader], reason: str
) -> None:
    with pytest.raises(StageError, match=reason):
        merge("entry", 3, queries, segments)


def test_a_fit_is_that_of_both_sides() -> None:
    both = merge("entry", 3, asked(QUERY, fit="crop"), [segment([ROW], fit="crop")])
    assert both.origin is not None and both.origin.fit == "crop"


def test_a_search_with_too_few_neighbours_is_named() -> None:
    with pytest.raises(StageError, match=r"K=5.*kept only 3.*specs/render\.json"):
        merge("entry", 5, asked(QUERY), [segment([(QUERY, picture(1), 0.5, [source("a.jpg")])], k=3)])


def test_a_search_with_more_neighbours_is_cut() -> None:
    rows = [(QUERY, picture(n), n / 8, [source(f"{n}.jpg")]) for n in range(9)]
    merged = merge("entry", 2, asked(QUERY), [segment(rows, k=9)])
    assert [match.distance for match in merged.answers[0].matches] == [0, 0.125]
    assert merged.library_size is None


def test_lines_have_everything_in_a_fixed_form() -> None:
    name = "日本/\udcff.jpg"
    table = segment([(QUERY, picture(1), 0.1, [source("b.jpg"), Source(name, "0" * 64), Source(name, "1" * 64)])])
    lines = list(json_lines(merge("entry", 3, asked(QUERY, OTHER), [table])))
    assert [json.loads(line)["query"] for line in lines] == [QUERY, OTHER]
    assert lines[0] == (
        '{"backbone":"a net at 96 px","k":3,"metric":"euclidean","model":"' + MODEL + '",'
        '"neighbors":[{"distance":0.1,"id":"' + picture(1) + '","likeness":null,'
        '"sources":["b.jpg","\\u65e5\\u672c/\\udcff.jpg"]}],"query":"' + QUERY + '","sources":["q/0.png"]}'
    )
    assert json.loads(lines[0])["neighbors"][0]["sources"] == ["b.jpg", name]


@given(st.floats(0, 2**100, width=32))
def test_distances_read_back_as_the_same_float32(distance: float) -> None:
    merged = merge("entry", 1, None, [segment([(QUERY, picture(1), distance, [source("a.jpg")])])])
    written = json.loads(next(json_lines(merged)))["neighbors"][0]["distance"]
    assert np.float32(written) == np.float32(distance)
