"""The map in the browser: points, a lasso that selects, clusters as a list, filters, and no map at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from playwright.sync_api import Locator, expect

from stages.serving.follow.map_listings import REPO
from stages.serving.http import map_routes
from tests.conditions import until
from tests.servers import Localpachd, StartPachd
from tests.stages.serving import maps, services
from tests.stages.serving.http.test_map_routes import place
from tests.stages.serving.page.conftest import Open
from tests.stages.serving.page.tabs import WAIT, Tab, violations
from tests.stages.serving.services import Service

if TYPE_CHECKING:
    from stages.serving.follow.snapshots import Snapshot

LAPTOP = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}

COLOURED = """() => { const canvas = document.getElementById("atlas-canvas");
  if (!canvas.width) return false;
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  return copy.getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value); }"""


@pytest.fixture(scope="module")
def pachd(start_shared_pachd: StartPachd, tmp_path_factory: pytest.TempPathFactory) -> Localpachd:
    return start_shared_pachd(tmp_path_factory.mktemp("pachd"))


@pytest.fixture(scope="module")
def mapped(pachd: Localpachd, ready: Snapshot) -> Iterator[Service]:
    maps.connect(pachd).client.create_repo(REPO)
    maps.write(pachd, ready, place)
    with services.running(maps.of(pachd, ready)) as service:
        yield service


def clusters(tab: Tab) -> Locator:
    return tab.find("#atlas-clusters button")


def test_a_lasso_selects_and_lists_what_it_holds(mapped: Service, opened: Open) -> None:
    tab = opened(mapped, **LAPTOP).open()
    tab.page.get_by_role("link", name="Map", exact=True).click()
    expect(tab.find("#atlas-summary")).to_contain_text("41 pictures in 2 clusters", timeout=WAIT)
    until(lambda: tab.page.evaluate(COLOURED))
    box = tab.find("#atlas-canvas").bounding_box()
    assert box is not None
    tab.button("Lasso").click()
    middle, below = box["x"] + 0.55 * box["width"], box["y"] + box["height"] - 4
    tab.page.mouse.move(middle, box["y"] + 4)
    tab.page.mouse.down()
    for x, y in ((box["x"] + box["width"] - 4, box["y"] + 4), (box["x"] + box["width"] - 4, below), (middle, below)):
        tab.page.mouse.move(x, y, steps=4)
    tab.page.mouse.up()
    expect(tab.find("#atlas-count")).to_have_text("20 pictures", timeout=WAIT)
    expect(tab.find("#selection-count")).to_have_text("20 pictures selected")
    names = tab.find("#atlas-tiles .name").evaluate_all("all => all.map((each) => each.title)")
    assert len(names) == 20 and all(each.startswith("trip/north/") for each in names)
    assert violations(tab.page) == []
    with tab.page.expect_download() as download:
        tab.find("#atlas-save summary").click()
        tab.find("#atlas-save a").click()
    assert download.value.path().read_text().count("trip/north/") == 20


def test_clusters_are_a_list_for_the_keyboard(mapped: Service, opened: Open) -> None:
    tab = opened(mapped, **PHONE).open("/?view=map")
    expect(clusters(tab)).to_have_count(2, timeout=WAIT)
    expect(clusters(tab).first).to_contain_text("trip/north")
    clusters(tab).nth(1).focus()
    tab.page.keyboard.press("Enter")
    expect(tab.find("#atlas-count")).to_have_text("trip/south: 19 pictures", timeout=WAIT)
    expect(tab.find("#selection")).to_be_hidden()
    tab.find("#atlas-tiles .tile a").first.press("Space")
    expect(tab.find("#viewer")).to_be_visible()
    assert violations(tab.page) == []
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_click_on_a_picture_finds_similar_ones_and_filters_hold(mapped: Service, opened: Open) -> None:
    tab = opened(mapped, **LAPTOP).open("/?view=map&filter=copies/00 again.png")
    until(lambda: tab.page.evaluate(COLOURED))
    box = tab.find("#atlas-canvas").bounding_box()
    assert box is not None
    for _ in range(2):  # the first shows what is there, and the cursor says so
        tab.page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"] + 1)
    expect(tab.find("#summary")).not_to_be_empty(timeout=WAIT)
    assert "id=" in tab.page.url and "view=map" not in tab.page.url


def test_without_a_map_the_page_says_how_to_make_one(
    mapped: Service, pachd: Localpachd, ready: Snapshot, opened: Open
) -> None:
    try:
        maps.write(pachd, ready, place, stale="the layout was computed with another model")
        tab = opened(mapped, **LAPTOP).open("/?view=map")
        expect(tab.find("#atlas-said")).to_contain_text("of another model", timeout=WAIT)
        expect(tab.find("#atlas-said code")).to_have_text("lookalike map fit")
        expect(tab.find("#atlas-body")).to_be_hidden()
        maps.connect(pachd).client.delete_repo(REPO, force=True)
        tab.open("/?view=map")
        expect(tab.find("#atlas-said")).to_contain_text("A map needs at least 50 pictures", timeout=WAIT)
        expect(tab.find("#atlas-said code")).to_have_count(0)
        with mock.patch.object(map_routes, "LEAST", len(ready.library)):
            tab.open("/?view=map")
            expect(tab.find("#atlas-said")).to_contain_text("has no map yet", timeout=WAIT)
        expect(tab.find("#atlas-said code")).to_have_text("lookalike map fit")
    finally:
        if not any(each.repo.name == REPO for each in maps.connect(pachd).client.list_repo()):
            maps.connect(pachd).client.create_repo(REPO)
        maps.write(pachd, ready, place)
