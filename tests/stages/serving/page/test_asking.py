"""The ways into a question and on from it, in a real browser."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.stages.orientations import exif, stored
from tests.stages.serving import services
from tests.stages.serving.page.tabs import WAIT, Tab, given
from tests.stages.serving.services import Service

NEW = services.made(77)


def asked(tab: Tab) -> dict[str, list[str]]:
    """The question in the address of the page."""
    return parse_qs(urlsplit(tab.page.url).query)


def test_a_picture_is_dropped_pasted_chosen_or_photographed(tab: Tab) -> None:
    tab.arrive("drop", ("new.png", NEW))
    tab.answered("new.png", tiles=12)
    expect(tab.find("#summary")).to_contain_text("12 pictures and 1 near-duplicate of 41 · euclidean · exact")
    expect(tab.find("#query .name")).to_have_text("new.png")
    tab.arrive("paste", ("pasted.png", services.made(78)))
    tab.answered("pasted.png", tiles=12)
    tab.choose(("chosen.png", services.made(79)))
    tab.answered("chosen.png", tiles=12)
    assert tab.find("#camera").get_attribute("capture") == "environment"
    tab.choose(("photograph.png", services.made(80)), camera=True)
    tab.answered("photograph.png", tiles=12)


@pytest.mark.only_in_all
def test_the_button_and_its_key_open_the_dialog_for_files(tab: Tab) -> None:
    with tab.page.expect_file_chooser() as chooser:
        tab.find("#choose").click()
    assert chooser.value.is_multiple()
    with tab.page.expect_file_chooser() as chooser:
        tab.page.keyboard.press("o")
    chooser.value.set_files(given("new.png", NEW))
    tab.answered("new.png")


def test_a_click_on_a_tile_searches_on_and_back_and_forward_return(tab: Tab) -> None:
    tab.choose(("new.png", NEW))
    tab.answered("new.png")
    first, names = tab.page.url, tab.names()
    tab.tiles.nth(2).locator("a.picture").click()
    tab.answered(names[2])
    assert list(asked(tab)) == ["id"]
    assert tab.names()[0] == names[2]
    expect(tab.tiles.first.locator(".likeness")).to_have_text("same picture")
    second = tab.page.url
    tab.page.go_back()
    tab.answered("new.png")
    assert (tab.page.url, tab.names()) == (first, names)
    tab.page.go_forward()
    tab.answered(names[2])
    assert tab.page.url == second
    tab.page.go_back()
    tab.answered("new.png")
    tab.page.go_back()
    expect(tab.find("#hero")).to_be_visible()


@pytest.mark.only_in_all
def test_a_reload_asks_again_and_a_link_works_in_another_tab(tab: Tab) -> None:
    tab.choose(("new.png", NEW))
    tab.answered("new.png")
    names = tab.names()
    tab.page.reload()
    tab.answered("new.png")
    assert tab.names() == names
    tab.tiles.nth(1).locator("a.picture").click()
    tab.answered(names[1])
    other = tab.context.new_page()
    other.goto(tab.page.url)
    expect(other.locator("#title")).to_have_text(f"Pictures like {names[1]}", timeout=WAIT)


@pytest.mark.only_in_all
def test_an_upload_that_another_browser_gave_is_said_to_be_gone(tab: Tab) -> None:
    tab.open("/?upload=" + "0" * 32)
    tab.notice("This picture is no longer here")


def test_options_narrow_the_answer_and_stand_in_the_address(tab: Tab) -> None:
    tab.choose(("new.png", NEW))
    tab.answered("new.png", tiles=12)
    tab.find("#filter").fill("trip/north/")
    tab.find("#filter").press("Enter")
    expect(tab.find("#summary")).to_contain_text("12 pictures of 41", timeout=WAIT)
    tab.page.wait_for_url("**filter=trip/north/**")
    tab.answered("new.png", tiles=12)
    assert all(int(name[:2]) % 2 for name in tab.names())
    tab.find("#k").select_option("24")
    tab.answered("new.png", tiles=20)
    tab.find("#metric").select_option("cosine")
    expect(tab.find("#summary")).to_contain_text("cosine", timeout=WAIT)
    assert asked(tab) | {"upload": []} == {
        "upload": [], "filter": ["trip/north/"], "k": ["24"], "metric": ["cosine"]
    }  # fmt: skip
    tab.find("#most").fill("0")
    tab.find("#most").press("Enter")
    expect(tab.find("#tiles")).to_contain_text("No picture in the library matches", timeout=WAIT)
    tab.button("Clear").click()
    tab.answered("new.png", tiles=12)
    assert list(asked(tab)) == ["upload"]


def test_a_region_is_drawn_with_the_pointer(tab: Tab) -> None:
    tab.choose(("new.png", NEW))
    tab.answered("new.png")
    whole = tab.names()
    frame = tab.find("#query .frame").bounding_box()
    assert frame is not None
    at = [(frame["x"] + frame["width"] * share, frame["y"] + frame["height"] * share) for share in (0.1, 0.45)]
    tab.page.mouse.move(*at[0])
    tab.page.mouse.down()
    tab.page.mouse.move(*at[1], steps=4)
    tab.page.mouse.up()
    tab.page.wait_for_url("**box=**")
    tab.answered("new.png", tiles=12)
    (box,) = asked(tab)["box"]
    assert [round(float(edge), 1) for edge in box.split(",")] == pytest.approx([0.1, 0.1, 0.5, 0.5], abs=0.1)
    assert tab.names() != whole
    tab.button("Whole picture").click()
    tab.answered("new.png")
    assert tab.names() == whole


def test_a_region_of_a_picture_that_browsers_cannot_show_is_where_it_is_seen(tab: Tab, service: Service) -> None:
    """A TIFF that is stored on its side, and the same picture upright in PNG."""
    upright = services.drawn(5, (320, 120))
    turned = services.file(stored(np.asarray(upright), 6), "TIFF", exif=exif(6), compression="tiff_lzw")
    tab.choose(("scan.tiff", turned))
    tab.answered("scan.tiff", tiles=12)
    expect(tab.find("#query .frame img")).to_have_js_property("naturalWidth", 320, timeout=WAIT)
    expect(tab.find("#query .facts")).to_contain_text("320 × 120")
    frame = tab.find("#query .frame").bounding_box()
    assert frame is not None
    tab.page.mouse.move(frame["x"] + 5, frame["y"] + 5)
    tab.page.mouse.down()
    tab.page.mouse.move(frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] - 5, steps=4)
    tab.page.mouse.up()
    tab.page.wait_for_url("**box=**")
    tab.answered("scan.tiff", tiles=12)
    box = [float(edge) for edge in asked(tab)["box"][0].split(",")]
    assert box == pytest.approx([0, 0, 0.5, 1], abs=0.06)
    found = service.search({"pictures": [{"upload": 0, "box": box}]}, [services.file(upright)]).data["neighbors"]
    assert [each["sources"][0]["path"].rpartition("/")[2] for each in found] == [
        each.strip() for each in tab.find("#tiles .name bdi").all_text_contents()
    ]
    tab.button("Change the region").click()
    expect(tab.find("#region .frame img")).to_have_js_property("naturalWidth", 320, timeout=WAIT)


@pytest.mark.only_in_all
def test_several_pictures_are_asked_together(tab: Tab) -> None:
    tab.choose(("one.png", services.made(3)), ("other.png", services.made(4)))
    expect(tab.title).to_have_text("Pictures like any of 2 pictures", timeout=WAIT)
    expect(tab.find(".tile")).to_have_count(12, timeout=WAIT)
    assert {"03.png", "04.png"} == set(tab.names()[:2])
    tab.page.get_by_label("all of them").check()
    expect(tab.title).to_have_text("Pictures like all of 2 pictures", timeout=WAIT)
    assert asked(tab)["combine"] == ["all"]
    tab.button("Remove one.png").click()
    tab.answered("other.png")


@pytest.mark.only_in_all
def test_a_picture_of_the_library_is_added_to_the_question(tab: Tab) -> None:
    tab.choose(("new.png", NEW))
    tab.answered("new.png")
    tab.tiles.nth(1).locator("a.picture").focus()
    tab.page.keyboard.press("a")
    expect(tab.title).to_have_text("Pictures like any of 2 pictures", timeout=WAIT)
    assert list(asked(tab)) == ["upload", "id"]
    tab.arrive("drop", ("more.png", services.made(78)), onto="[data-add=yes]")
    expect(tab.title).to_have_text("Pictures like any of 3 pictures", timeout=WAIT)


@pytest.mark.only_in_all
def test_a_file_is_refused_with_the_reason_and_another_can_be_chosen(tab: Tab) -> None:
    tab.choose(("notes.png", b"this is not a picture"))
    tab.notice("That did not work")
    tab.notice("notes.png")
    with tab.page.expect_file_chooser() as chooser:
        tab.button("Choose another picture").click()
    chooser.value.set_files(given("new.png", NEW))
    tab.answered("new.png")


def test_bad_pictures_among_several_are_named_and_the_others_asked_about(tab: Tab, service: Service) -> None:
    tab.choose(("notes.png", b"this is not a picture"), ("new.png", NEW), ("cut.png", NEW[:200]))
    tab.answered("new.png", tiles=12)
    tab.message("Left out 2 pictures. notes.png: ")
    tab.message("cut.png: ")
    assert list(asked(tab)) == ["upload"]
    known, gone = service.id_of("trip/north/07.png"), "0" * 64
    tab.open(f"/?id={known}&upload={gone[:32]}&id={gone}")
    tab.answered("07.png", tiles=12)
    assert asked(tab) == {"id": [known]}
    tab.page.go_back()
    tab.answered("new.png", tiles=12)


def test_what_cannot_be_asked_with_is_said_at_once(tab: Tab) -> None:
    tab.choose(*((f"{at}.png", services.made(at)) for at in range(17)))
    tab.message("A question takes up to 16 pictures; these are 17.")
    tab.button("Close the message").click()
    expect(tab.find("#message [role=alert]")).to_have_count(0)


def test_a_web_address_that_is_not_public_is_refused_by_the_service(tab: Tab) -> None:
    tab.arrive("paste", text="http://127.0.0.1:1/picture.png")
    tab.notice("That did not work")
    assert asked(tab) == {"url": ["http://127.0.0.1:1/picture.png"]}
