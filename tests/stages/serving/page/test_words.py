"""Words in the bar at the top and beside the query, in a real browser."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.stages.serving import services
from tests.stages.serving.page.conftest import Open
from tests.stages.serving.page.tabs import WAIT, Tab
from tests.stages.serving.services import Service


def _asked(tab: Tab) -> dict[str, list[str]]:
    return parse_qs(urlsplit(tab.page.url).query)


def _answered(tab: Tab, title: str) -> None:
    expect(tab.title).to_have_text(title, timeout=WAIT)
    expect(tab.find("#results[aria-busy=true]")).to_have_count(0, timeout=WAIT)


@pytest.fixture
def worded_tab(opened: Open, texts: Service) -> Tab:
    return opened(texts, viewport={"width": 1280, "height": 800}).open()


def test_words_are_typed_refined_and_kept_in_the_address(worded_tab: Tab, texts: Service) -> None:
    tab = worded_tab
    expect(tab.find("#address")).to_have_attribute("placeholder", "Describe a picture, or type a name", timeout=WAIT)
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("red bicycle, <b>雪")
    tab.page.keyboard.press("Enter")
    _answered(tab, "Pictures of “red bicycle, <b>雪”")
    assert _asked(tab) == {"text": ["red bicycle, <b>雪"]}
    found = texts.search({"text": "red bicycle, <b>雪"}).data["neighbors"]
    near = [each["sources"][0]["path"].rpartition("/")[2] for each in found if each["group"] <= 12]
    assert tab.names()[:3] == near[:3]
    expect(tab.find("#tiles .note")).to_contain_text("Those from words are on another scale than between pictures.")
    expect(tab.find(".likeness, .similar")).to_have_count(0)
    expect(tab.find("#tiles .measure b").first).to_have_attribute("title", f"Distance {found[0]['distance']}")
    tab.find("#asked-without").fill("snow, ice")
    tab.page.keyboard.press("Enter")
    _answered(tab, "Pictures of “red bicycle, <b>雪” without snow, ice")
    assert _asked(tab) == {"text": ["red bicycle, <b>雪"], "without": ["snow, ice"]}
    tab.page.reload()
    _answered(tab, "Pictures of “red bicycle, <b>雪” without snow, ice")
    expect(tab.find("#asked-without")).to_have_value("snow, ice")
    tab.find("#k").select_option("6")
    expect(tab.find("#tiles .tile:not(.unfolded)")).to_have_count(6, timeout=WAIT)
    assert _asked(tab)["text"] == ["red bicycle, <b>雪"]
    first = tab.names()[0]
    tab.tiles.first.locator("a.picture").click()
    tab.answered(first)
    assert "text" not in _asked(tab)  # pictures like that one, whatever words it was found by
    tab.page.go_back()
    _answered(tab, "Pictures of “red bicycle, <b>雪” without snow, ice")


def test_words_and_a_picture_are_one_question(worded_tab: Tab) -> None:
    tab = worded_tab
    tab.choose(("new.png", services.made(77)))
    tab.answered("new.png")
    tab.find("#asked-text").fill("a cat")
    tab.button("Search").last.click()
    _answered(tab, "Pictures like new.png and “a cat”")
    tab.find("#query input[value=all]").check()
    tab.page.wait_for_url("**combine=all**")
    _answered(tab, "Pictures like new.png and “a cat”")
    expect(tab.find(".likeness")).to_have_count(0)
    tab.find("#asked-text").fill("")
    tab.page.keyboard.press("Enter")
    tab.answered("new.png")
    expect(tab.find(".likeness").first).to_be_visible()


def test_the_suggestions_begin_with_the_words_as_they_are(worded_tab: Tab) -> None:
    tab = worded_tab
    expect(tab.find("#address")).to_have_attribute("placeholder", "Describe a picture, or type a name", timeout=WAIT)
    tab.find("#address").click()
    tab.page.keyboard.type("trip")
    first = tab.find("#proposals [role=option]").first
    expect(first).to_contain_text("Pictures of “trip”", timeout=WAIT)
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Enter")
    _answered(tab, "Pictures of “trip”")


def test_without_a_text_tower_words_find_names_and_the_page_says_so(tab: Tab) -> None:
    expect(tab.find("#standing")).to_contain_text("pictures", timeout=WAIT)
    tab.find("#address").click()
    tab.page.keyboard.type("SOUTH")
    tab.page.keyboard.press("Enter")
    expect(tab.find("#chips")).to_contain_text("Contains “SOUTH”", timeout=WAIT)
    expect(tab.find("#message")).to_contain_text("the model has no text tower")
    expect(tab.tiles).to_have_count(20, timeout=WAIT)
    tab.open("/?text=north")
    expect(tab.find("#notice")).to_contain_text("This model does not know words", timeout=WAIT)
    expect(tab.find("#notice")).to_contain_text("lookalike model push")
    tab.button("Find names and values").click()
    expect(tab.find("#chips")).to_contain_text("Contains “north”", timeout=WAIT)
    expect(tab.tiles).to_have_count(20, timeout=WAIT)
