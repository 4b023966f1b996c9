"""The result page: self-contained, complete, and safe with any names of pictures."""

from __future__ import annotations

import re
from base64 import b64decode
from dataclasses import replace
from io import BytesIO

import pytest
from hypothesis import given, strategies as st
from PIL import Image

from stages.files.packs import Rejection
from stages.quality.entry_answers import EntryAnswers, QueryAnswer, QueryMatch
from stages.record.origin import Origin
from stages.record.sources import Source
from stages.report.result_pages import MOST_QUERIES, pages
from tests.stages.report.page_documents import PageDocument


def jpeg(colour: str) -> bytes:
    buffer = BytesIO()
    Image.new("RGB", (96, 96), colour).save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


RED, BLUE = jpeg("red"), jpeg("blue")


def source(*paths: str) -> tuple[Source, ...]:
    return tuple(Source(path, "0" * 64) for path in paths)


def answers(query: str = "q.png", matches: int = 3, entry: str = "garden", k: int = 3) -> EntryAnswers:
    found = tuple(QueryMatch(f"m{n}", n / 8, source(f"lib/{n}.jpg"), BLUE) for n in range(matches))
    answer = QueryAnswer("m0", source(query), RED, found)
    return EntryAnswers(entry, k, Origin("a" * 64, "pad"), "euclidean" if matches else None, (answer,))


def page(of: EntryAnswers) -> str:
    """The only page."""
    ((name, text),) = pages(of)
    assert name == "index.html"
    return text


def document(of: EntryAnswers) -> PageDocument:
    return PageDocument(page(of))


def test_the_model_is_named_before_its_hash() -> None:
    texts = document(replace(answers(), origin=Origin("a" * 64, "pad", backbone="efficientnet-lite0 at 224 px"))).texts
    named = texts[texts.index("Model") + 1 :]
    assert [each.strip() for each in named[:2]] == ["efficientnet-lite0 at 224 px", "a" * 64]
    assert any(text.endswith("by euclidean distance with efficientnet-lite0 at 224 px") for text in texts)


def test_the_page_is_self_contained() -> None:
    read = document(answers())
    assert read.links == ["neighbors.jsonl", "grid.png", "neighbors.jsonl"]
    assert len(read.pictures) == 4
    for link in read.pictures:
        with Image.open(BytesIO(b64decode(link.partition(",")[2]))) as image:
            assert image.size == (96, 96)


def test_query_then_neighbours_with_distances_in_order() -> None:
    of = answers()
    assert document(of).alternatives == [
        "Query picture q.png",
        "Neighbour 1: lib/0.jpg",
        "Neighbour 2: lib/1.jpg",
        "Neighbour 3: lib/2.jpg",
    ]
    texts = document(of).texts
    assert [text for text in texts if re.fullmatch(r"[\d.]+", text)] == ["0", "0.1250", "0.2500"]
    assert texts.count("same picture") == 1


def test_every_source_is_named() -> None:
    many = [f"copies/{n:03d}.jpg" for n in range(250)]
    of = answers()
    match = replace(of.answers[0].matches[0], sources=source(*many))
    of = replace(of, answers=(replace(of.answers[0], matches=(match,)),))
    texts = document(of).texts
    assert [text for text in texts if text.startswith("copies/")] == many
    assert "and 246 more names" in texts


@given(st.text(min_size=1).filter(lambda text: text.strip() and text.isprintable()))
def test_names_are_shown_as_they_are(name: str) -> None:
    read = document(answers(query=name, entry=name))
    assert name in "".join(read.texts)
    assert f"Query picture {name}" in read.alternatives


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ('" onerror="x', '" onerror="x'),
        ("&amp;", "&amp;"),
        ("bell\x07", "bell␇"),
        ("gpj.\u202ecod", "gpj.\\u{202e}cod"),
        ("\udcff\ud800", "\\xff\\u{d800}"),
    ],
)
def test_names_cannot_break_out_of_their_place(name: str, said: str) -> None:
    of = replace(answers(query=name, entry=name), rejected=(Rejection(name, "preprocess", name),))
    page(of).encode("utf-8")
    read = document(of)
    assert all("onerror" not in attributes for _, attributes in read.elements)
    assert [text for text in read.texts if text == said] == [said] * 3  # as a source, as rejected, as its reason


def test_rejected_files_and_notes_are_listed() -> None:
    rejected = tuple(Rejection(f"bad-{n}.jpg", "preprocess", f"reason {n}") for n in range(30))
    texts = document(EntryAnswers("garden", 3, None, None, (), rejected)).texts
    assert "This entry has no pictures to search for." in texts
    assert "30 files in this entry were rejected." in texts
    assert [text for text in texts if text.startswith("reason ")] == [f"reason {n}" for n in range(30)]


def test_an_empty_library_is_noted() -> None:
    texts = document(answers(matches=0)).texts
    assert "The library is empty, so there are no pictures to compare with yet." in texts
    assert "The library has no pictures to compare with." in texts


def test_a_small_library_is_noted() -> None:
    assert "The library has only 2 pictures, but 3 neighbours were requested." in document(answers(matches=2)).texts


def several(count: int, k: int = 3) -> EntryAnswers:
    """An entry of so many queries, whose ids and names have opposite orders."""
    of = answers(k=k)
    each = (replace(of.answers[0], query=f"id{n:05}", sources=source(f"{count - n:05}.png")) for n in range(count))
    return replace(of, answers=tuple(each))


def queries(read: PageDocument) -> list[str]:
    return [each for each in read.alternatives if each.startswith("Query")]


def test_every_page_leads_to_the_others() -> None:
    of = several(12 * MOST_QUERIES + 1)
    found = {name: PageDocument(text) for name, text in pages(of)}
    assert [*found] == ["index.html", *(f"page-{n}.html" for n in range(2, 14))]
    assert [name for read in found.values() for name in queries(read)] == [
        f"Query picture {n:05}.png" for n in range(1, len(of.answers) + 1)
    ]
    for read in found.values():
        links = set(read.links)
        assert links <= {*found, "neighbors.jsonl", "grid.png"}
        assert len(links) <= 9
    names = [*found]
    ways = [{link.get("rel"): link["href"] for link in read.all("a") if "rel" in link} for read in found.values()]
    assert [way.get("next") for way in ways] == [*names[1:], None]
    assert [way.get("prev") for way in ways] == [None, *names[:-1]]
    assert "Queries 1,201 to 1,201 of 1,201: " in found["page-13.html"].texts
    assert "Nearest pictures for “garden”, page 13 of 13 · lookalike" in found["page-13.html"].texts


@pytest.mark.parametrize(("k", "most"), [(1, 100), (3, 100), (9, 40), (399, 1), (1000, 1)])
def test_more_neighbours_mean_fewer_queries_on_a_page(k: int, most: int) -> None:
    assert max(len(queries(PageDocument(text))) for _, text in pages(several(150, k))) == most


def test_notes_and_rejected_files_are_on_the_first_page() -> None:
    of = replace(several(2 * MOST_QUERIES), rejected=(Rejection("bad.jpg", "preprocess", "empty file"),))
    first, second = (text for _, text in pages(of))
    assert "bad.jpg" in first
    assert "1 file in this entry was rejected." in first
    assert "rejected" not in second


def test_neighbours_without_pictures_are_named() -> None:
    of = answers()
    bare = replace(of.answers[0], matches=tuple(replace(match, thumbnail=None) for match in of.answers[0].matches))
    read = document(replace(of, answers=(bare,)))
    assert read.alternatives == ["Query picture q.png"]
    assert {"lib/0.jpg", "lib/1.jpg", "lib/2.jpg", "0.1250"} <= set(read.texts)
    assert "no preview" not in read.texts


def test_missing_pictures_leave_a_blank() -> None:
    of = answers()
    blank = replace(of.answers[0], sources=(), thumbnail=None)
    texts = document(replace(of, answers=(blank,))).texts
    assert "no preview" in texts
    assert "(name unknown)" in texts
