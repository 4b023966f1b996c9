import re
from html.parser import HTMLParser

import numpy as np

from stages.copies import Near, groups
from stages.copypages import Facts, drawn, pages
from stages.sources import Source
from tests.stages.pairings import source, thumbnail

FACTS = Facts(0.5, "euclidean", "a backbone", "m" * 64, hash_bits=12)


class Checked(HTMLParser):
    """Fails on a tag that is not closed in order; collects pictures, links and everything that could load."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.pictures: list[str] = []
        self.links: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert tag not in ("script", "link", "iframe")
        if tag == "img":
            assert (given["src"] or "").startswith("data:image/jpeg;base64,")
            self.pictures.append(given["alt"] or "")
        if tag == "a":
            self.links.append(given["href"] or "")
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def chain(sources: list[tuple[Source, ...]]) -> Near:
    """All pictures near to the first one."""
    rows = np.arange(len(sources), dtype=np.int32)
    ids = [f"{row:064x}" for row in rows]
    return Near(ids, sources, np.zeros_like(rows), rows, rows.astype(np.float32) / 100, rows.astype(np.uint8))


def test_names_are_text_and_the_kept_file_is_marked() -> None:
    found = groups(chain([(source("a&<b>.jpg", 50, 40, 2_500_000, "2019-08-04T16:30:12"),), (source("b\n.jpg"),)]))
    ((name, page),) = pages(found, FACTS, {f"{row:064x}": thumbnail("x") for row in range(2)})
    assert name == "index.html"
    assert Checked(page).pictures == ["a&<b>.jpg", "b␊.jpg"]
    assert '<li class="kept"><b>keep</b> <bdi>a&amp;&lt;b&gt;.jpg</bdi>' in page
    facts = re.sub(r"<[^>]+>", "", page)
    assert "50 × 40 · 2.5 MB · 2019-08-04 16:30" in facts
    assert "1 group of copies; removing 1 file frees 1.0 kB" in facts
    assert "most pixels" in facts
    assert "euclidean distance up to 0.5000, and perceptual hashes that differ in at most 12 of 64 bits" in facts


def test_many_groups_make_pages_that_are_linked() -> None:
    pictures = [(source(f"{row}/a"), source(f"{row}/b")) for row in range(120)]
    rows = np.arange(120, dtype=np.int32)
    near = Near(
        [f"{row:064x}" for row in rows], pictures, rows, rows, np.zeros(120, np.float32), np.zeros(120, np.uint8)
    )
    made = dict(pages(groups(near), FACTS, {}))
    assert list(made) == ["index.html", "page-2.html", "page-3.html"]
    for name, page in made.items():
        assert set(Checked(page).links) == set(made) - {name}
        assert page.count("Exact copies</h2>") == 1
    assert sum(page.count('<section class="card"') for page in made.values()) == 120


def test_a_large_group_shows_its_nearest_and_names_the_rest() -> None:
    found = groups(chain([(source(f"{row}.jpg", 99 - row),) for row in range(40)]))
    assert len(drawn(found)) == 25
    ((_, page),) = pages(found, FACTS, dict.fromkeys(drawn(found), thumbnail("x")))
    assert len(Checked(page).pictures) == 25
    assert "and 15 pictures more: line 1 of groups.jsonl has all of them" in page


def test_near_groups_come_before_exact_ones_and_keep_their_numbers() -> None:
    exact = tuple(source(f"copy {number}.jpg") for number in range(30))
    near = Near(
        [f"{row:064x}" for row in range(3)],
        [exact, (source("one.jpg"),), (source("other.jpg"),)],
        np.array([0, 1], np.int32),
        np.array([0, 2], np.int32),
        np.array([0, 0.125], np.float32),
        np.array([0, 3], np.uint8),
    )
    ((_, page),) = pages(groups(near), FACTS, {})
    Checked(page)
    assert page.index("Near copies</h2>") < page.index("Group 2") < page.index("Exact copies</h2>")
    assert page.index("Exact copies</h2>") < page.index(">Group 1")
    assert "and 17 files more" in page
    assert "no preview" in page
