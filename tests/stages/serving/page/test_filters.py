"""Pictures filtered on the page: facets, chips, the map, SQL, suggestions, the order, downloads."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.stages.serving import services
from tests.stages.serving.page.conftest import Open
from tests.stages.serving.page.tabs import WAIT, Tab, violations
from tests.stages.serving.services import Service

if TYPE_CHECKING:
    from stages.backbone.embedder import Embedder

VIENNA, SYDNEY = (48.2, 16.37), (-33.86, 151.2)


def known(at: int) -> dict[str, Any]:
    """What is known of the picture with this number: of the last five nothing."""
    latitude, longitude = VIENNA if at % 3 else SYDNEY
    if at >= 35:
        return {}
    return {
        "taken": f"{2018 + at % 3}-0{1 + at % 9}-11T10:00:00",
        "camera": "Canon EOS 5D" if at % 2 else "NIKON D750",
        "latitude": latitude + at / 1000,
        "longitude": longitude,
        "label": f"kind {at % 2}",
    }


@pytest.fixture(scope="module")
def album(embedder: Embedder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service for 40 pictures by two cameras in three years at two places."""
    root = tmp_path_factory.mktemp("album")
    paths = {f"{'home' if at % 4 else 'trip'}/{at:02}.png": at for at in range(40)}
    files = {path: services.made(at) for path, at in paths.items()}
    facts = {path: known(at) for path, at in paths.items()}
    held = services.library(root / "index", embedder, files, facts=facts)
    snapshot = services.snapshot(held, embedder, root / "cache")
    with services.running(snapshot) as service:
        yield service


@pytest.fixture
def tab(opened: Open, album: Service) -> Tab:
    """A tab with the page of that service."""
    return opened(album, viewport={"width": 1280, "height": 800}).open()


def where(tab: Tab) -> str:
    """The filter in the address."""
    return parse_qs(urlsplit(tab.page.url).query).get("where", [""])[0]


def chips(tab: Tab) -> list[str]:
    """What the page says is filtered."""
    return tab.find("#chips li bdi").all_text_contents()


def filtered(tab: Tab, said: str) -> None:
    """Waits until the panel says how many pictures match."""
    expect(tab.find("#matching")).to_have_text(said, timeout=WAIT)


def facet(tab: Tab, column: str, value: str) -> Any:
    """The box of a value."""
    return tab.find(f"[data-column={column}]").get_by_role("checkbox", name=re.compile(f"^{value}"))


def saved(tab: Tab, words: str) -> bytes:
    """The file that an entry of the menu of downloads gives."""
    tab.find(".downloads:visible summary").click()
    with tab.page.expect_download() as download:
        tab.find(".downloads:visible li").get_by_text(re.compile(words)).click()
    return Path(download.value.path()).read_bytes()


def rows(content: bytes) -> list[dict[str, str]]:
    """Those of a CSV file."""
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


def test_dates_are_read_as_sql_writes_them(tab: Tab) -> None:
    tab.open("/?where=taken%20%3E%3D%20DATE%20'2019-01-01'%20AND%20label%20IN%20('kind%201',%20'it''s')")
    filtered(tab, "11 of 40 pictures")
    assert chips(tab) == ["Date taken: from 2019-01-01", "Label: kind 1 or it's"]
    expect(tab.find("[data-column=taken]").get_by_label("from")).to_have_value("2019-01-01")


def test_numbers_of_pixels_are_said_in_words_with_their_scale(tab: Tab) -> None:
    said = """import("/assets/kit/text-format.js").then(({ shown }) => [
      shown("brightness", 0.149), shown("brightness", 0.15), shown("contrast", 0.5), shown("sharpness", 0.2),
      shown("sharpness", 1), shown("rating", 0.5), shown("bytes", 1500), shown("folder", null), shown("mine", true),
    ])"""
    words = ["very dark (0.149)", "dark (0.15)", "medium (0.5)", "soft (0.2)", "sharp (1)"]
    assert tab.page.evaluate(said) == [*words, "0.5", "1.5 kB", "Outside folders", "Yes"]
    filtered(tab, "40 pictures")
    tab.find("#add-facet").select_option("brightness")
    panel = tab.find("[data-column=brightness]")
    expect(panel).to_contain_text("0 is black, 1 is white")
    expect(panel.locator(".ends")).to_contain_text("very dark (0)")
    tab.find(".order select").select_option("name")
    tab.tiles.first.locator(".larger").click()
    expect(tab.find("#viewer-about")).to_contain_text("very dark (0)")


def test_pictures_are_filtered_by_camera_and_year_and_their_rows_are_saved(tab: Tab) -> None:
    filtered(tab, "40 pictures")
    facet(tab, "camera", "Canon EOS 5D").check()
    filtered(tab, "17 of 40 pictures")
    expect(facet(tab, "camera", "NIKON D750")).to_be_visible()  # the others can still be chosen
    taken = tab.find("[data-column=taken]")
    taken.get_by_label("from").fill("2019-01-01")
    taken.get_by_label("from").blur()
    filtered(tab, "11 of 40 pictures")
    taken.get_by_label("to").focus()
    tab.page.keyboard.type("0101201")  # each digit makes another date
    assert where(tab) == "camera = 'Canon EOS 5D' AND taken >= '2019-01-01'"
    facet(tab, "camera", "Canon EOS 5D").dispatch_event("click")
    expect(tab.find("#chips li bdi")).to_have_text(["Date taken: from 2019-01-01"])
    expect(tab.find("#matching")).not_to_have_text("11 of 40 pictures")
    tab.page.go_back()
    expect(tab.find("#chips li bdi")).to_have_count(2)
    expect(taken.get_by_label("to")).to_be_focused()  # nothing is drawn anew under the keys
    tab.page.keyboard.type("9")
    expect(taken.get_by_label("Date taken: to")).to_have_value("2019-01-01")
    taken.get_by_label("Date taken: to").evaluate(
        """(to) => {
          for (const [input, value] of [[to.parentElement.firstElementChild, "2019-02-01"], [to, "2019-12-31"]]) {
            input.removeAttribute("data-typing");
            input.value = value;
            input.dispatchEvent(new Event("change"));  // before anything is drawn anew
          }
        }"""
    )
    expect(tab.find("#chips li bdi").nth(1)).to_have_text("Date taken: 2019-02-01 – 2019-12-31")
    taken.get_by_label("Date taken: from").fill("2019-01-01")
    taken.get_by_label("Date taken: to").blur()
    filtered(tab, "6 of 40 pictures")
    assert where(tab) == "camera = 'Canon EOS 5D' AND taken BETWEEN '2019-01-01' AND '2019-12-31 23:59:59'"
    assert chips(tab) == ["Camera: Canon EOS 5D", "Date taken: 2019-01-01 – 2019-12-31"]
    expect(tab.tiles).to_have_count(6)
    assert tab.names() == [f"{at:02}.png" for at in range(1, 35, 6)]
    found = rows(saved(tab, "CSV"))
    assert [each["path"].rpartition("/")[2] for each in found] == tab.names()
    assert {each["camera"] for each in found} == {"Canon EOS 5D"}
    assert violations(tab.page) == []
    tab.page.get_by_role("button", name="Remove the filter Camera: Canon EOS 5D").click()
    filtered(tab, "12 of 40 pictures")
    tab.page.go_back()
    filtered(tab, "6 of 40 pictures")
    expect(facet(tab, "camera", "Canon EOS 5D")).to_be_checked()
    tab.tiles.first.locator("a.picture").click()  # a search keeps the filters
    tab.answered("01.png", tiles=6)
    assert [each["path"].rpartition("/")[2] for each in rows(saved(tab, "CSV"))] == tab.names()
    tab.button("Clear all").click()
    tab.answered("01.png", tiles=12)


def test_a_filter_in_sql_that_cannot_be_used_is_said_at_its_field(tab: Tab) -> None:
    filtered(tab, "40 pictures")
    tab.find("#where-details > summary").click()
    tab.find("#where").fill("camra = 'x'")
    tab.button("Apply").click()
    expect(tab.find("#where-problem")).to_contain_text("camera")
    expect(tab.find("#where")).to_be_focused()
    tab.find("#where").fill("month(taken) = 3 or camera is null")
    tab.button("Apply").click()
    filtered(tab, "9 of 40 pictures")
    assert chips(tab) == ["(month(taken) = 3 or camera is null)"]
    tab.open("/?where=nonsense")
    expect(tab.find("#where-problem")).to_contain_text("nonsense", timeout=WAIT)


def test_names_and_values_are_found_as_one_types(tab: Tab) -> None:
    filtered(tab, "40 pictures")
    field, proposals = tab.find("#address"), tab.find("#proposals [role=option]")
    field.press_sequentially("nik")
    expect(proposals).to_have_text([re.compile("Camera: NIKON D750 ?18 pictures")], timeout=WAIT)
    field.press("ArrowDown")
    assert field.get_attribute("aria-activedescendant") == "proposal-0"
    field.press("Enter")
    filtered(tab, "18 of 40 pictures")
    field.fill("07")
    expect(proposals).to_have_count(2, timeout=WAIT)
    field.press("Enter")
    filtered(tab, "1 of 40 pictures")
    assert chips(tab) == ["Contains “07”"]
    field.fill("beach.jpg")
    field.press("Enter")
    expect(tab.find("#browse")).to_contain_text("No picture in the library matches these filters.", timeout=WAIT)


@pytest.mark.only_in_all
def test_a_map_of_places_and_the_order_of_dates(tab: Tab) -> None:
    filtered(tab, "40 pictures")
    tab.find("#places > summary").click()
    expect(tab.find(".place")).to_have_count(2, timeout=WAIT)
    tab.page.get_by_role("button", name=re.compile("^12 pictures around 33.*S, 151.2° E")).press("Enter")
    filtered(tab, "12 of 40 pictures")
    assert [each.partition(":")[0] for each in chips(tab)] == ["Place"]
    tab.find(".order select").select_option("-taken")
    expect(tab.tiles.first.locator("bdi")).to_have_text("06.png")
    bars = tab.find("[data-column=taken] .bars button")
    expect(tab.find("[data-column=taken] .bars [tabindex='0']")).to_have_count(1)
    bars.first.focus()
    for key in ("ArrowRight", "ArrowLeft", "Enter"):
        tab.page.keyboard.press(key)
    expect(tab.find("#chips li bdi")).to_have_count(2)
    expect(bars.first).to_have_attribute("aria-pressed", "true")
    tab.button("Clear all").click()
    filtered(tab, "40 pictures")
    tab.find("#add-facet").select_option("bytes")
    expect(tab.find("[data-column=bytes] .bars")).to_be_visible(timeout=WAIT)
    tab.find("#add-facet").select_option("height")
    expect(tab.find("[data-column=height] + [data-column=bytes]")).to_be_visible(timeout=WAIT)  # in the service's order
    assert violations(tab.page) == []


@pytest.mark.only_in_all
def test_filters_on_a_phone_are_folded_and_lead_back_to_the_pictures(album: Service, opened: Open) -> None:
    tab = opened(album, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True).open()
    filtered(tab, "40 pictures")
    expect(tab.find("#facets")).to_be_hidden()
    tab.find("#facets-panel > summary").tap()
    facet(tab, "camera", "NIKON D750").check()
    filtered(tab, "18 of 40 pictures")
    tab.button("Show the pictures").tap()
    expect(tab.find("#facets")).to_be_hidden()
    expect(tab.tiles.first).to_be_in_viewport()
    assert tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.only_in_all
def test_filters_are_read_and_written_as_they_are(tab: Tab) -> None:
    read = "async (text) => (await import('/assets/filters/where-clauses.js')).read(text)"
    again = (
        "async (text) => { const m = await import('/assets/filters/where-clauses.js'); return m.write(m.read(text)); }"
    )
    cases: list[tuple[str, list[dict[str, Any]]]] = [
        ("camera = 'a''b'", [{"column": "camera", "values": ["a'b"]}]),
        ("camera IN ('a AND b', 'c')", [{"column": "camera", "values": ["a AND b", "c"]}]),
        ('"Odd ""name""" IS NULL', [{"column": 'Odd "name"', "unknown": True}]),
        ("width BETWEEN 1 AND 20.5 AND sold = TRUE", [{"from": 1}, {"values": [True]}]),
        ("taken >= '2019-01-01'", [{"column": "taken", "from": "2019-01-01", "to": None}]),
        ("name ILIKE '%a\\%b\\_%' ESCAPE '\\'", [{"name": "a%b_"}]),
        (
            "latitude BETWEEN -3.5 AND 2 AND longitude BETWEEN 1 AND 2",
            [{"place": {"south": -3.5, "north": 2, "west": 1, "east": 2}}],
        ),
        ("length(name) > 3 AND NOT (camera = 'a' OR width < 3)", [{"text": "length(name) > 3"}, {}]),
        ("rating = 9223372036854775807 AND folder IS NULL", [{"column": "rating"}, {"unknown": True}]),
        ("camera = 'a", [{"text": "camera = 'a"}]),
    ]
    for text, clauses in cases:
        found = tab.page.evaluate(read, text)
        assert [{**each, **want} for each, want in zip(found, clauses, strict=True)] == found
        assert tab.page.evaluate(again, text) == text
    assert tab.page.evaluate(again, "a = 1 OR b = 2") == "(a = 1 OR b = 2)"
    assert tab.page.evaluate(again, "a >= 1 AND b = 2 AND a <= 3") == "a BETWEEN 1 AND 3 AND b = 2"


def test_the_pictures_that_are_shown_are_saved_as_one_file(tab: Tab, album: Service) -> None:
    tab.open("/?where=camera%20IS%20NULL")
    filtered(tab, "5 of 40 pictures")
    with zipfile.ZipFile(io.BytesIO(saved(tab, "Pictures"))) as archive:  # there is no Pachyderm to have them from
        assert archive.namelist() == ["MISSING.txt"]
        assert len(archive.read("MISSING.txt").splitlines()) == 7
    id = album.id_of("home/01.png")
    tab.open(f"/?id={id}")
    tab.answered("01.png")
    with zipfile.ZipFile(io.BytesIO(saved(tab, "Pictures"))) as archive:
        assert len(archive.read("MISSING.txt").splitlines()) == 2 + tab.find("#tiles .tile").count()
    form = "async (id) => (await (await import('/assets/kit/service-client.js')).zip(new URLSearchParams({ id }))).size"
    assert tab.page.evaluate(form, id) > 100  # too many for an address go in a form
