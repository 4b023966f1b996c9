import re

from stages.quality.copy_groups import CopyCandidates, exact_groups, near_groups
from stages.record.origin import Origin
from stages.record.sources import Source
from stages.report.copy_pages import EXACT, NEAR, CopyFacts, draw_pages, pages
from tests.stages.pairings import candidates, source, thumbnail
from tests.stages.report.page_documents import PageDocument

FACTS = CopyFacts(0.5, "euclidean", Origin("m" * 64, "pad", backbone="a backbone"), hash_bits=12)


def star(sources: list[Source], turn: int = 0) -> CopyCandidates:
    """All pictures near to the first one."""
    pairs = ((0, row, row / 100) for row in range(1, len(sources)))
    return candidates([(each,) for each in sources], *pairs, turn=turn)


def copies_of(count: int, first: str = "copy") -> list[Source]:
    return [source(f"{first} {number}.jpg", pixels=first) for number in range(count)]


def test_names_are_text_and_the_kept_file_is_marked() -> None:
    both = (
        source("a&<b>.jpg", 50, 40, 2_500_000, "2019-08-04T16:30:12", pixels="p"),
        source("b\n.jpg", 50, 40, pixels="p"),
    )
    found = exact_groups(candidates([both]))
    ((name, page),) = pages(EXACT, found, FACTS, {f"{0:064x}": thumbnail("x")})
    assert name == "index.html"
    assert PageDocument(page).alternatives == ["a&<b>.jpg"]
    assert '<li class="kept"><bdi>a&amp;&lt;b&gt;.jpg</bdi>' in page
    assert "50 × 40 · 2.5 MB · 2019-08-04 16:30" in re.sub(r"<[^>]+>", "", page)
    assert "1 group of exact copies; 1 file can go, which frees 1.0 kB" in PageDocument(page).words
    assert "date of the camera" in PageDocument(page).words
    assert "The same picture again" in PageDocument(page).words


def test_near_copies_are_shown_and_not_listed() -> None:
    found = near_groups(star([source("first.jpg", 99), source("<i>.jpg"), source("other.jpg")], turn=5))
    ((name, page),) = pages(NEAR, found, FACTS, dict.fromkeys(draw_pages(found), thumbnail("x")))
    assert name == "near.html"
    assert PageDocument(page).alternatives == ["first.jpg", "<i>.jpg", "other.jpg"]
    assert "1 group of near copies: look at each before you remove any" in PageDocument(page).words
    assert PageDocument(page).words.count("near copy, turned by 90°") == 2
    assert "remove.txt" not in page


def test_many_groups_make_pages_that_are_linked() -> None:
    found = exact_groups(candidates([copies_of(2, f"{row}") for row in range(120)]))
    made = dict(pages(EXACT, found, FACTS, {}))
    assert list(made) == ["index.html", "page-2.html", "page-3.html"]
    for name, page in made.items():
        assert set(PageDocument(page).links) == set(made) - {name}
    assert sum(page.count('<section class="card"') for page in made.values()) == 120
    pictures = [(source(f"{row}"),) for row in range(240)]
    found = near_groups(candidates(pictures, *((row, row + 1, 0.1) for row in range(0, 240, 2))))
    made = dict(pages(NEAR, found, FACTS, {}))
    assert list(made) == ["near.html", "near-2.html", "near-3.html"]
    assert all(set(PageDocument(page).links) == set(made) - {name} for name, page in made.items())


def test_a_large_group_shows_its_nearest_and_names_the_rest() -> None:
    found = near_groups(star([source(f"{row}.jpg", 99 - row) for row in range(40)]))
    assert len(draw_pages(found)) == 25
    ((_, page),) = pages(NEAR, found, FACTS, dict.fromkeys(draw_pages(found), thumbnail("x")))
    assert len(PageDocument(page).alternatives) == 25
    assert "and 15 pictures more: line 1 of near.jsonl has all of them" in page
    ((_, page),) = pages(EXACT, exact_groups(candidates([copies_of(30)])), FACTS, {})
    PageDocument(page)
    assert "and 17 more files" in page
    assert "no preview" in page
