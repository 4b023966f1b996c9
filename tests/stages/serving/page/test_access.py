"""The page with the keyboard alone, for screen readers, on a phone, in the dark, and within its policy."""

from __future__ import annotations

import http.client
import re

from playwright.sync_api import expect

from tests.stages.serving import services
from tests.stages.serving.page.conftest import Open
from tests.stages.serving.page.tabs import WAIT, Tab, given, violations
from tests.stages.serving.services import Service

NEW = services.made(77)


def test_every_step_is_possible_with_the_keyboard_alone(tab: Tab) -> None:
    keyboard = tab.page.keyboard
    with tab.page.expect_file_chooser() as chooser:
        keyboard.press("o")
    chooser.value.set_files(given("new.png", NEW))
    tab.answered("new.png")
    expect(tab.title).to_be_focused()
    names = tab.names()
    tab.tiles.first.locator("a.picture").focus()
    keyboard.press("ArrowRight")
    expect(tab.tiles.nth(1).locator("a.picture")).to_be_focused()
    keyboard.press("End")
    expect(tab.tiles.last.locator("a.picture")).to_be_focused()
    keyboard.press("Home")
    keyboard.press("ArrowDown")
    across = tab.tiles.first.evaluate(
        "(tile) => getComputedStyle(tile.parentElement).gridTemplateColumns.split(' ').length"
    )
    expect(tab.tiles.nth(across).locator("a.picture")).to_be_focused()
    keyboard.press("Space")
    expect(tab.find("#viewer")).to_be_visible()
    keyboard.press("ArrowLeft")
    expect(tab.find("#viewer h2")).to_have_text(names[across - 1])
    keyboard.press("Escape")
    expect(tab.find("#viewer")).to_be_hidden()
    tab.tiles.nth(1).locator("a.picture").focus()
    keyboard.press("Enter")
    tab.answered(names[1])
    keyboard.press("f")
    expect(tab.find("#filter")).to_be_focused()
    keyboard.type("trip/south/")
    keyboard.press("Enter")
    tab.page.wait_for_url("**filter=trip/south/**")
    tab.answered(names[1])
    tab.title.focus()
    keyboard.press("d")
    expect(tab.find("#provenance")).to_be_visible()
    keyboard.press("n")
    expect(tab.find("#hero")).to_be_visible()
    keyboard.press("?")
    expect(tab.find("#keys")).to_be_visible()


def test_a_region_is_made_with_the_keyboard_alone(tab: Tab) -> None:
    tab.choose(("new.png", NEW))
    tab.answered("new.png")
    tab.page.keyboard.press("r")
    dialog = tab.find("#region")
    expect(dialog).to_be_visible()
    expect(tab.find("#region-search")).to_be_disabled()
    tab.find("#region-middle").focus()
    tab.page.keyboard.press("Enter")
    expect(tab.find("#region-words")).to_contain_text("25.0 % from the left")
    tab.page.keyboard.press("ArrowRight")
    expect(tab.find("#region-words")).to_contain_text("27.0 % from the left")
    tab.page.keyboard.press("Shift+ArrowDown")
    expect(tab.find("#region-words")).to_contain_text("52.0 % high")
    tab.page.keyboard.press("Enter")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**box=0.27,0.25,0.77,0.77**")
    tab.answered("new.png", tiles=12)


def test_single_letters_can_be_switched_off(tab: Tab) -> None:
    tab.find("#help").click()
    tab.page.get_by_label("Use single-key shortcuts").uncheck()
    tab.page.keyboard.press("Escape")
    tab.page.keyboard.press("?")
    expect(tab.find("#keys")).to_be_hidden()


def test_screen_readers_hear_what_happens_and_every_control_has_a_name(tab: Tab) -> None:
    expect(tab.find("#browse .folders li")).to_have_count(2, timeout=WAIT)
    assert violations(tab.page) == []
    tab.choose(("new.png", NEW))
    tab.answered("new.png")
    expect(tab.find("#live")).to_contain_text("12 pictures and 1 near-duplicate found, the nearest ", timeout=WAIT)
    assert violations(tab.page) == []
    by_role = tab.page.get_by_role
    expect(by_role("search", name="Search by words, name or web address")).to_be_visible()
    expect(by_role("complementary", name="Your query")).to_be_visible()
    expect(by_role("region", name="Pictures like new.png")).to_be_visible()
    expect(by_role("list", name="Nearest pictures")).to_be_visible()
    link = tab.tiles.first.locator("a.picture").get_attribute("aria-label") or ""
    assert re.fullmatch(r"Find pictures similar to \d\d.*\.(png|jpg), distance [\d.]+.*", link)
    tab.tiles.first.locator("a.picture").focus()
    tab.page.keyboard.press("Space")
    expect(tab.page.get_by_role("dialog", name=tab.names()[0])).to_be_visible()
    assert violations(tab.page) == []


def test_the_page_says_its_language_and_has_one_main_heading(tab: Tab) -> None:
    tab.open("/?folder=trip")
    expect(tab.find("h1:visible")).to_have_text("trip", timeout=WAIT)
    tab.open("/")
    assert tab.page.evaluate("document.documentElement.lang") == "en"
    for _ in range(2):
        assert tab.find("h1:visible").count() == 1
        tab.choose(("new.png", NEW))
        tab.answered("new.png")


def test_a_phone_shows_all_of_it_without_scrolling_sideways(service: Service, opened: Open) -> None:
    phone = opened(service, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True).open()
    expect(phone.find("#browse .heading")).to_be_visible(timeout=WAIT)
    expect(phone.find("#photograph")).to_be_visible()
    _fits(phone)
    phone.open("/?folder=trip/north")
    expect(phone.tiles).to_have_count(20, timeout=WAIT)
    _fits(phone)
    phone.choose(("a picture with a very long name, " + "as cameras and people give them " * 3 + ".png", NEW))
    expect(phone.find("#tiles .tile:not(.unfolded)")).to_have_count(12, timeout=WAIT)
    _fits(phone)
    phone.find("#filters summary").tap()
    phone.find("#details summary").tap()
    expect(phone.find("#provenance")).to_be_visible()
    _fits(phone)
    phone.tiles.first.locator("button.larger").tap()
    expect(phone.find("#viewer")).to_be_visible()
    _fits(phone)


def _fits(phone: Tab) -> None:
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= 390
    small = phone.page.evaluate(
        """() => [...document.querySelectorAll("a.button, button, select, input:not([type=checkbox], [hidden])")]
            .filter((each) => each.checkVisibility())
            .map((each) => [each.outerHTML.slice(0, 80), each.getBoundingClientRect()])
            .filter(([, { width, height }]) => width && (width < 24 || height < 24)).map(([html]) => html)"""
    )
    assert small == []


def test_the_dark_page_is_dark_and_readable(service: Service, opened: Open) -> None:
    bright = {}
    for scheme in ("light", "dark"):
        tab = opened(service, color_scheme=scheme).open()
        expect(tab.find("#browse h2")).to_be_visible(timeout=WAIT)
        bright[scheme] = tab.colour("body")
        assert tab.page.evaluate(_CONTRAST) >= 4.5
    assert bright["dark"] < 64 < 192 < bright["light"]


def test_nothing_moves_for_those_who_do_not_want_it(service: Service, opened: Open) -> None:
    tab = opened(service, reduced_motion="reduce").open()
    tab.choose(("new.png", NEW))
    tab.answered("new.png")
    assert tab.page.evaluate("document.getAnimations().length") == 0


def test_the_policy_allows_nothing_from_elsewhere_and_no_script_in_the_page(tab: Tab, service: Service) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", service.port)
    connection.request("GET", "/")
    policy = connection.getresponse().getheader("Content-Security-Policy") or ""
    connection.close()
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    violated = tab.page.evaluate(
        """() => new Promise((done) => {
            addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective));
            const script = document.createElement("script");
            script.textContent = "window.ran = true";
            document.body.append(script);
        })"""
    )
    assert violated == "script-src-elem"
    assert tab.page.evaluate("window.ran") is None
    tab.faults.clear()  # the console's line on it


_CONTRAST = """() => {
  const numbers = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = numbers(colour).map((each) => each / 255)
      .map((each) => (each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (each) => {
    for (let at = each; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (!/, 0\\)$|transparent/.test(colour)) return colour;
    }
    return getComputedStyle(document.documentElement).backgroundColor;
  };
  const texts = [...document.querySelectorAll("h1, h2, p, a, button, label, li, td, dt, dd, summary")]
    .filter((each) => each.checkVisibility() && each.innerText?.trim());
  return Math.min(...texts.map((each) => {
    const [one, other] = [luminance(getComputedStyle(each).color), luminance(behind(each))].sort((a, b) => b - a);
    return (one + 0.05) / (other + 0.05);
  }));
}"""
