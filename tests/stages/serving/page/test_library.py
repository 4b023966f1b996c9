"""The library in the browser: folders, pages, many pictures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest
from playwright.sync_api import expect

from stages.record.sources import Source
from tests.stages.serving import services
from tests.stages.serving.page.conftest import Open
from tests.stages.serving.page.tabs import WAIT, Tab, violations
from tests.stages.serving.segments import ids, open_library, write_segment
from tests.stages.serving.services import Service

if TYPE_CHECKING:
    from stages.backbone.embedder import Embedder


MANY = 20_000


@pytest.fixture(scope="module")
def large(embedder: Embedder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service for a library of 20,000 pictures, 18,000 of them in one folder."""
    root = tmp_path_factory.mktemp("large")
    names = ids("a", MANY)
    folders = ["all" if row % 10 else f"few/{row // 200:02}" for row in range(MANY)]
    sources = {
        id: [Source(f"{folder}/{row:06}.jpg", id, 640, 480, 9000, "")]
        for row, (id, folder) in enumerate(zip(names, folders, strict=True))
    }
    spec = embedder.spec
    vectors = np.random.default_rng(0).random((MANY, spec.dimension), np.float32)
    facts = {"model": spec.sha256, "image_size": spec.image_size, "dimension": spec.dimension}
    held = open_library([write_segment(root / "a", names, vectors, sources, facts)])
    snapshot = services.snapshot(held, embedder, root / "cache")
    with services.running(snapshot) as service:
        yield service


def test_folders_lead_down_and_crumbs_lead_up(tab: Tab) -> None:
    browse = tab.find("#browse")
    expect(browse.locator(".folders bdi")).to_have_text(["copies", "trip"], timeout=WAIT)
    # One of the files is a copy of another one.
    expect(browse.locator(".heading .count")).to_have_text("41 pictures in 42 files")
    expect(browse.locator(".folders .count")).to_have_text(["2 files", "40 files"])
    expect(tab.find("#standing")).to_contain_text("41 pictures")
    expect(tab.find("#hero")).to_be_visible()
    browse.locator(".folders a").nth(1).click()
    expect(browse.locator("h1")).to_have_text("trip")
    expect(browse.locator(".folders bdi")).to_have_text(["north", "south"])
    browse.locator(".folders a").first.click()
    expect(browse.locator("h1")).to_have_text("north")
    expect(tab.tiles).to_have_count(20)
    expect(browse.locator(".heading .count")).to_have_text("20 files")
    expect(tab.find("#hero")).to_be_hidden()
    assert tab.names()[:2] == ["01.png", "03.png"]
    assert tab.page.url.endswith("?folder=trip/north")
    tab.page.get_by_role("link", name="The library").click()
    expect(browse.locator(".folders bdi")).to_have_text(["copies", "trip"])
    tab.page.go_back()
    expect(browse.locator("h1")).to_have_text("north")


def test_a_picture_of_a_folder_is_searched_on_from(tab: Tab) -> None:
    tab.open("/?folder=trip/south")
    expect(tab.tiles).to_have_count(20, timeout=WAIT)
    tab.tiles.nth(1).locator("a.picture").click()
    tab.answered("02.png", tiles=12)
    expect(tab.tiles.first.locator(".likeness")).to_have_text("same picture")
    expect(tab.find("#query .facts")).to_contain_text("in the library")


def test_a_folder_that_is_not_there_is_said(tab: Tab) -> None:
    tab.open("/?folder=trip/west")
    expect(tab.find("#browse")).to_contain_text("The library has no pictures in this folder.", timeout=WAIT)


def test_many_thousand_pictures_come_a_page_at_a_time(large: Service, opened: Open) -> None:
    tab = opened(large, viewport={"width": 1280, "height": 800}).open("/?folder=all")
    expect(tab.find("#browse .count").first).to_contain_text("18,000 files", timeout=WAIT)
    shown = tab.find("#browse .tile")
    expect(shown).to_have_count(120, timeout=WAIT)
    for pages in (2, 3):
        tab.page.mouse.wheel(0, 100_000)
        expect(shown).to_have_count(120 * pages, timeout=WAIT)
    assert tab.page.evaluate("document.querySelectorAll('*').length") < 6_000
    tiles = shown.all()
    names = [tiles[at].locator("bdi").text_content() for at in (0, 119, 120, 359)]
    rows = [row for row in range(MANY) if row % 10]
    assert names == [f"{rows[at]:06}.jpg" for at in (0, 119, 120, 359)]
    # The larger view goes on to what is not loaded yet.
    tiles[359].locator("a.picture").focus()
    tab.page.keyboard.press("Space")
    expect(tab.find("#viewer-place")).to_contain_text("360 of 360+")
    tab.page.keyboard.press("ArrowRight")
    expect(tab.find("#viewer-name")).to_have_text(f"{rows[360]:06}.jpg", timeout=WAIT)
    tab.page.keyboard.press("Escape")
    expect(tab.find("#viewer")).to_be_hidden()
    assert [each.strip() for each in shown.locator("bdi").all_text_contents()][:480] == [
        f"{row:06}.jpg" for row in rows[:480]
    ]
    # Going on and back finds the same place, with what was loaded.
    tiles[300].locator("a.picture").scroll_into_view_if_needed()
    assert tab.page.evaluate("scrollY") > 1000
    tiles[300].locator("a.picture").click()
    tab.answered(f"{rows[300]:06}.jpg", tiles=12)
    tab.page.go_back()
    left = shown.nth(300).locator("a.picture")
    expect(left).to_be_focused(timeout=WAIT)
    expect(left).to_be_in_viewport()


def test_many_folders_and_their_covers(large: Service, opened: Open) -> None:
    tab = opened(large).open("/?folder=few")
    expect(tab.find("#browse .folders li")).to_have_count(100, timeout=WAIT)
    expect(tab.find("#browse .folders .count").first).to_have_text("20 files")
    expect(tab.find("#browse .folders .cover img").first).to_be_attached(timeout=WAIT)


def test_pictures_are_ticked_one_by_one_by_range_and_all_and_stay_ticked(tab: Tab) -> None:
    tab.open("/?folder=trip/south")
    expect(tab.tiles).to_have_count(20, timeout=WAIT)
    ticks, bar = tab.find(".tile:visible .tick"), tab.find("#selection")
    expect(bar).to_be_hidden()
    ticks.nth(1).check()
    expect(bar.locator("p")).to_have_text("1 picture selected")
    ticks.nth(4).click(modifiers=["Shift"])
    expect(bar.locator("p")).to_have_text("4 pictures selected")
    assert [ticks.nth(place).is_checked() for place in range(6)] == [False, True, True, True, True, False]
    ticks.nth(3).click(modifiers=["Shift"])  # unticks from the last one back to this one
    expect(bar.locator("p")).to_have_text("2 pictures selected")
    assert violations(tab.page) == []
    tab.page.get_by_role("link", name="The library").click()
    tab.page.locator("#browse .folders a").nth(1).click()
    tab.page.locator("#browse .folders a").first.click()
    expect(tab.find("#browse h1")).to_have_text("north")
    expect(bar.locator("p")).to_have_text("2 pictures selected")
    tab.button("Select all shown").click()
    expect(bar.locator("p")).to_have_text("22 pictures selected")
    expect(tab.button("Find similar")).to_be_disabled()  # 16 pictures make a question
    tab.button("Unselect all").click()
    expect(bar).to_be_hidden()
    assert not any(each.is_checked() for each in ticks.all())


def test_pictures_are_ticked_by_the_keyboard_and_searched_with(tab: Tab) -> None:
    tab.open("/?folder=trip/south")
    expect(tab.tiles).to_have_count(20, timeout=WAIT)
    tab.tiles.first.locator("a").focus()
    for key in ("x", "ArrowRight", "ArrowRight", "Shift+X"):
        tab.page.keyboard.press(key)
    expect(tab.find("#selection p")).to_have_text("3 pictures selected")
    tab.button("Find similar").click()
    tab.answered("any of 3 pictures")
    expect(tab.find("#tiles .tick:checked")).to_have_count(3)
