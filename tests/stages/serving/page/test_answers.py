"""What an answer shows: likeness, folded near-duplicates, the larger view, where it came from."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import expect

from stages.quality.distance_limits import DistanceLimits
from stages.quality.distance_scale import DistanceScale
from stages.serving.follow.snapshots import Snapshot
from tests.stages.serving import services
from tests.stages.serving.page.conftest import Open
from tests.stages.serving.page.tabs import WAIT, Tab, violations
from tests.stages.serving.services import Service


class Tracer:
    """Makes a page that says what it was asked."""

    def page(self, id: str, path: str, at: str) -> str:
        """See stages.serving.http.trace_renderer."""
        return f"<!doctype html><style>p {{ color: rgb(1, 2, 3) }}</style><p>{id} {path} {at}</p>"


def asked(tab: Tab, seed: int = 0) -> Tab:
    """The answer for a picture that the library has twice, with a near-duplicate."""
    tab.choose(("mine.png", services.made(seed)))
    tab.answered("mine.png")
    return tab


def test_the_same_picture_and_near_copies_are_called_so_and_folded_with_a_count(tab: Tab, ready: Snapshot) -> None:
    asked(tab)
    first = tab.tiles.first
    expect(first.locator(".likeness")).to_have_text("same picture")
    expect(first.locator(".measure")).to_have_count(0)
    expect(first.locator(".more")).to_have_text("+1 file")
    expect(tab.find(".tile .likeness.near-copy").first).to_have_text("near copy")
    expect(tab.find(".tile:has(.near-copy) .name bdi").first).to_have_text("00 smaller.jpg")
    expect(tab.tiles.nth(2).locator(".measure")).to_have_text(re.compile(r"^\d\.\d+$"))  # its model has no scale
    assert ready.similarity is None
    expect(tab.find(".similar")).to_have_count(0)
    near = tab.find(".tile:has(.near-copy)").first
    expect(near).to_be_hidden()
    fold = tab.tiles.first.locator(".fold")
    count = len(tab.find(".tile.unfolded").all())
    expect(fold).to_contain_text("near-duplicate")
    expect(fold).to_have_attribute("aria-expanded", "false")
    expect(tab.tiles).to_have_count(12)
    expect(tab.find("#summary")).to_contain_text(f"12 pictures and {count} near-duplicate")
    fold.click()
    expect(near).to_be_visible()
    expect(fold).to_have_attribute("aria-expanded", "true")
    tab.find("#fold").click()
    expect(tab.tiles).to_have_count(12 + count)
    expect(tab.find("#fold")).to_have_text("Fold near-duplicates")
    tab.find("#fold").click()
    expect(near).to_be_hidden()
    expect(tab.tiles).to_have_count(12)
    tab.button("Show 24 instead of 12").click()
    tab.answered("mine.png", tiles=24)


def test_tiles_say_how_alike_pictures_are_and_the_larger_view_has_the_number(
    opened: Open, ready: Snapshot, tmp_path: Path
) -> None:
    limits = DistanceLimits(0.0, 1e-9, 2e-9)
    scale = DistanceScale(ready.spec.sha256, True, limits, limits)
    scaled = services.snapshot(ready.library, ready.embedder, tmp_path, scale=scale)
    with services.running(scaled) as service:
        tab = opened(service, viewport={"width": 1280, "height": 800}).open()
        asked(tab, seed=999)
        expect(tab.find(".tile .likeness").last).to_have_text("weak")
        expect(tab.find("#metric")).to_be_hidden()
        expect(tab.find("#tiles .note")).to_have_text("Nothing in the library looks similar. These are the nearest.")
        tab.tiles.first.hover()
        tab.tiles.first.locator("button.larger").click()
        expect(tab.find("#viewer .measure b")).to_have_text(re.compile(r"^\d\.\d+$"))


def test_the_larger_view_has_the_file_its_path_and_its_download(tab: Tab) -> None:
    asked(tab)
    address = tab.page.url
    tab.tiles.first.hover()
    tab.tiles.first.locator("button.larger").click()
    viewer = tab.find("#viewer")
    expect(viewer).to_be_visible()
    expect(viewer.locator("h2")).to_have_text("00 again.png")
    expect(viewer.locator(".path bdi")).to_have_text(["copies/00 again.png", "trip/south/00.png"])
    expect(tab.find("#viewer-place")).to_contain_text("1 of 13")
    expect(viewer.locator("dd").nth(0)).to_have_text("copies")
    expect(viewer.locator("dd").nth(1)).to_have_text("160 × 120")
    assert violations(tab.page) == []
    viewer.get_by_role("button", name="Copy path").first.click()
    assert tab.page.evaluate("navigator.clipboard.readText()") == "copies/00 again.png"
    download = viewer.get_by_role("link", name="Download").first
    assert download.get_attribute("download") == "00 again.png"
    link = download.get_attribute("href") or ""
    assert link.startswith("/originals/")
    assert link.endswith("?source=0&download=1")
    # The original cannot be had without Pachyderm, so the thumbnail takes its place, and says so.
    expect(viewer.locator(".note")).to_be_visible(timeout=WAIT)
    tab.page.keyboard.press("ArrowRight")
    expect(viewer.locator("h2")).not_to_have_text("00 again.png")
    expect(tab.find("#viewer-place")).to_contain_text("2 of 13")
    tab.button("Previous picture").click()
    expect(tab.button("Previous picture")).to_be_focused()
    expect(tab.button("Previous picture")).to_have_attribute("aria-disabled", "true")
    tab.page.keyboard.press("Escape")
    expect(viewer).to_be_hidden()
    tab.page.wait_for_url(address)


def test_the_larger_view_zooms_with_keys_wheel_buttons_and_double_click_and_fills_the_screen(tab: Tab) -> None:
    asked(tab)
    tab.tiles.first.locator("a.picture").focus()
    tab.page.keyboard.press("Space")
    frame, level, name = tab.find("#viewer-picture"), tab.find("#viewer-fit"), tab.find("#viewer h2")
    expect(frame).to_be_focused()
    expect(level).to_have_text("Fit")
    expect(tab.find("#viewer-note")).to_be_visible(timeout=WAIT)  # the thumbnail, which has 32 pixels
    tab.page.keyboard.press("+")
    expect(level).not_to_have_text("Fit")
    before = tab.find("#viewer .large").get_attribute("style")
    tab.page.keyboard.press("ArrowRight")  # moves what is zoomed
    expect(name).to_have_text("00 again.png")
    assert tab.find("#viewer .large").get_attribute("style") != before
    tab.page.keyboard.press("0")
    expect(level).to_have_text("Fit")
    for zooming in (frame.dblclick, tab.button("Zoom in").click):
        zooming()
        expect(frame).to_have_class("zoomed")
        level.click()
        expect(frame).not_to_have_class("zoomed")
    frame.hover()
    tab.page.mouse.wheel(0, -400)
    expect(frame).to_have_class("zoomed")
    tab.page.mouse.wheel(0, 4000)
    expect(frame).not_to_have_class("zoomed")
    tab.button("Full screen").click()
    expect(tab.find("#viewer .window:fullscreen")).to_be_visible()
    tab.button("Close").click()
    expect(tab.find("#viewer")).to_be_hidden()
    expect(tab.find(":fullscreen")).to_have_count(0)


def test_two_fingers_zoom_the_larger_view(service: Service, opened: Open) -> None:
    tab = opened(service, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    tab.open(f"/?folder=trip/south&show={service.id_of('trip/south/02.png')}")
    frame = tab.find("#viewer-picture")
    expect(frame).to_be_visible(timeout=WAIT)
    box = frame.bounding_box()
    assert box is not None
    session = tab.context.new_cdp_session(tab.page)
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    for kind, apart in (("touchStart", 20), ("touchMove", 40), ("touchMove", 80), ("touchEnd", 0)):
        points = [{"x": x - apart, "y": y}, {"x": x + apart, "y": y}] if apart else []
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    expect(frame).to_have_class("zoomed")
    expect(tab.find("#viewer dl").first).to_contain_text("160 × 120")  # facts in a folder, too


def test_the_larger_view_is_a_place_to_come_back_to(tab: Tab) -> None:
    asked(tab)
    tab.tiles.nth(1).locator("a.picture").focus()
    tab.page.keyboard.press("Space")
    viewer = tab.find("#viewer")
    expect(viewer).to_be_visible()
    name = viewer.locator("h2").inner_text()
    tab.page.reload()
    expect(viewer).to_be_visible(timeout=WAIT)
    expect(viewer.locator("h2")).to_have_text(name)
    viewer.get_by_role("link", name="Find similar").click()
    tab.answered(name)
    expect(viewer).to_be_hidden()


def test_the_panel_says_where_the_answer_came_from(tab: Tab, ready: Snapshot) -> None:
    asked(tab)
    tab.page.keyboard.press("d")
    panel = tab.find("#provenance")
    expect(panel).to_be_visible()
    for said in (ready.commits.index, ready.commits.library, ready.commits.model, ready.spec.described):
        expect(panel).to_contain_text(said)
    expect(panel).to_contain_text("library on cpu, query on cpu")
    expect(panel).to_contain_text(f"lookalike serve --at {ready.commits.index}")
    expect(panel.locator("tbody tr").first).to_contain_text("copies/00 again.png")
    expect(panel.get_by_role("link", name="Trace copies/00 again.png")).to_have_count(0)


def test_one_click_traces_a_source(ready: Snapshot, opened: Open) -> None:
    with services.running(ready, tracer=Tracer()) as service:
        tab = asked(opened(service).open())
        tab.find("#details summary").click()
        with tab.context.expect_page() as traced:
            tab.page.get_by_role("link", name="Trace trip/south/00.png").click()
        page = traced.value
        page.wait_for_load_state()
        expect(page.locator("p")).to_contain_text(f"trip/south/00.png {ready.commits.index}")
        assert page.evaluate("getComputedStyle(document.querySelector('p')).color") == "rgb(1, 2, 3)"


def test_names_are_text_and_never_markup(embedder: object, tmp_path: Path, opened: Open) -> None:
    """A library whose names would be scripts, where they were inserted as markup."""
    hostile = "<img src=x onerror=alert(1)>/\u202e<script>'\"&.png"
    held = services.library(tmp_path / "index", embedder, {hostile: services.made(1)}, segments=1)  # type: ignore[arg-type]
    snapshot = services.snapshot(held, embedder, tmp_path / "cache")  # type: ignore[arg-type]
    with services.running(snapshot) as service:
        tab = opened(service).open()
        tab.choose(("<b>mine<b>.png", services.made(1)))
        tab.answered("<b>mine<b>.png", tiles=1)
        assert tab.find("b b, .name img, script:not([src])").count() == 0
        tab.page.keyboard.press("d")
        expect(tab.find("#provenance td").nth(1)).to_have_text(hostile)
