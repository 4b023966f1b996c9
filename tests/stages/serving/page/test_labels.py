"""Pictures labelled in the browser: ticked, reviewed, one commit that the command knows, and taken back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from pipelines.client.repository import PutFile, Repository
from stages.record.label_files import unite
from tests.command import Command
from tests.servers import StartPachd
from tests.stages.serving import copies
from tests.stages.serving.copies import TOKEN, CopyWorld
from tests.stages.serving.page.conftest import Open
from tests.stages.serving.page.tabs import WAIT, violations
from tests.stages.serving.services import Service

if TYPE_CHECKING:
    from stages.serving.follow.snapshots import Snapshot

LAPTOP = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}

MINE = b"source,label\ntrip/south/04.png,dog\n"


@pytest.fixture(scope="module")
def world(start_shared_pachd: StartPachd, tmp_path_factory: pytest.TempPathFactory) -> CopyWorld:
    made = copies.make(start_shared_pachd(tmp_path_factory.mktemp("pachd")), tmp_path_factory.mktemp("pictures"))
    made.put(["trip/south/00.png"])
    made.connection.client.create_repo("labels")
    Repository(made.connection, "labels").write([PutFile("/mine.csv", MINE)])
    return made


@pytest.fixture(scope="module")
def editing(world: CopyWorld, ready: Snapshot) -> Iterator[Service]:
    with copies.serving(world, ready) as service:
        yield service


def labels(world: CopyWorld) -> dict[str, str]:
    return unite(Repository(world.connection, "labels").contents().items()).of


def test_ticked_pictures_get_a_label_by_the_keyboard_alone_and_lose_it_again(
    world: CopyWorld, editing: Service, opened: Open, command: Command
) -> None:
    tab = opened(editing, **LAPTOP).open(f"/?folder=trip/south#token={TOKEN}")
    expect(tab.tiles).to_have_count(20, timeout=WAIT)
    tab.tiles.nth(1).locator("a").focus()
    press = tab.page.keyboard.press
    for key in ("x", "ArrowRight", "ArrowRight", "Shift+X", "l"):  # 02, 04, 06
        press(key)
    expect(tab.find("#labelling-title")).to_have_text("Label 3 pictures")
    expect(tab.find("#label-names option")).to_have_attribute("value", "dog")
    expect(tab.find("#label-name")).to_be_focused()
    assert violations(tab.page) == []
    tab.page.keyboard.type("Dog")
    press("Enter")
    review = tab.find("#review")
    expect(review.locator("h2")).to_have_text('Label 3 pictures "Dog"?')
    expect(review.locator("h3")).to_have_text(["2 pictures: no label → Dog", "1 picture: dog → Dog"])
    expect(review.locator("img")).to_have_count(3)
    expect(tab.button("Label 3 pictures")).to_be_disabled()
    expect(review.get_by_label("“Dog” is a new label, beside “dog”")).to_be_visible()
    assert violations(tab.page) == []
    assert labels(world) == {"trip/south/04.png": "dog"}
    review.get_by_label("“Dog” is a new label").focus()
    for key in ("Space", "Tab", "Enter"):
        press(key)
    expect(tab.find("#done")).to_contain_text("3 pictures labelled “Dog”.", timeout=WAIT)
    expect(tab.find("#selection")).to_be_hidden()
    assert labels(world) == {f"trip/south/{number:02}.png": "Dog" for number in (2, 4, 6)}
    told = command.run("history", "--address", world.connection.address)
    assert 'Label 3 pictures "Dog" on the page' in told.stdout, told
    tab.find("#done button").first.focus()
    press("Enter")
    expect(tab.find("#done")).to_contain_text('Taken back: Label 3 pictures "Dog" on the page', timeout=WAIT)
    assert labels(world) == {"trip/south/04.png": "dog"}


def test_a_label_that_others_have_changed_is_shown_again_on_a_phone(
    world: CopyWorld, editing: Service, opened: Open
) -> None:
    tab = opened(editing, **PHONE).open(f"/?folder=trip/south#token={TOKEN}")
    expect(tab.tiles).to_have_count(20, timeout=WAIT)
    tab.find(".tile .tick").nth(2).check()
    tab.button("Label").click()
    tab.find("#label-name").fill("dog")
    tab.button("Review").click()
    expect(tab.find("#label-problem")).to_contain_text("have the label dog already")
    tab.button("Remove their labels").click()
    expect(tab.find("#review h3")).to_have_text("1 picture: dog → no label")
    Repository(world.connection, "labels").write([PutFile("/other.csv", b"source,label\nelsewhere.png,cow\n")])
    tab.button("Remove the labels").click()
    expect(tab.find("#review [role=alert]")).to_contain_text("the library has changed since this was shown")
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390
    tab.button("Cancel").click()
    assert labels(world)["trip/south/04.png"] == "dog"


def test_a_service_without_edit_says_how_to_label(world: CopyWorld, ready: Snapshot, opened: Open) -> None:
    with copies.serving(world, ready, edit=False) as service:
        tab = opened(service, **LAPTOP).open("/?folder=trip/south")
        expect(tab.tiles).to_have_count(20, timeout=WAIT)
        tab.find(".tile .tick").nth(2).check()
        tab.button("Label").click()
        expect(tab.find("#label-problem")).to_contain_text("lookalike serve --edit")
        expect(tab.find("#label-name")).to_be_disabled()
        expect(tab.button("Remove their labels")).to_be_disabled()
