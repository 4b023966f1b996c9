"""The view of labels, in a real browser: beside the search, and of a service that classifies alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from stages.serving.follow.promotion_source import PromotionSource
from stages.serving.follow.snapshots import SnapshotState
from tests.stages.serving import models, services
from tests.stages.serving.page import tabs
from tests.stages.serving.page.conftest import Open
from tests.stages.serving.page.tabs import WAIT, Tab
from tests.stages.serving.services import Service

if TYPE_CHECKING:
    from stages.backbone.embedder import Embedder
    from stages.serving.follow.promoted_model import PromotedModel
    from stages.serving.follow.snapshots import Snapshot

NEW = services.made(77)
LAPTOP = {"viewport": {"width": 1280, "height": 800}}


@pytest.fixture(scope="module")
def model(embedder: Embedder, tmp_path_factory: pytest.TempPathFactory) -> PromotedModel:
    """A promoted model of the library's backbone."""
    return models.promoted(tmp_path_factory.mktemp("model"), embedder)


@pytest.fixture
def both(ready: Snapshot, model: PromotedModel) -> Iterator[Service]:
    """A service that searches and classifies."""
    with services.running(ready, promoted=model) as running:
        yield running


@pytest.fixture
def alone(model: PromotedModel) -> Iterator[Service]:
    """A service that classifies alone."""
    with services.running(None, promoted=model) as running:
        yield running


def labels(tab: Tab) -> list[str]:
    """The labels that are shown, after the answer has come."""
    expect(tab.find("#notice")).to_be_hidden(timeout=WAIT)
    expect(tab.find(".labels li").first).to_be_visible(timeout=WAIT)
    return [each.strip() for each in tab.find(".labels bdi").all_text_contents()]


def likeliest(service: Service, content: bytes, top: int = 5) -> list[str]:
    """The labels as the service gives them."""
    answer = service.ask(f"/classify?top={top}", content, {"Content-Type": "image/png"}).data
    return [each["label"] for each in answer["pictures"][0]["labels"]]


def test_the_tab_shows_the_labels_of_the_same_picture(both: Service, opened: Open) -> None:
    tab = opened(both, **LAPTOP).open()
    tab.choose(("new.png", NEW))
    tab.answered("new.png", tiles=12)
    tab.page.get_by_role("link", name="Classify", exact=True).click()
    assert labels(tab) == likeliest(both, NEW)
    expect(tab.find("#classes-title")).to_have_text(likeliest(both, NEW)[0])
    expect(tab.find("#tiles")).to_be_hidden()
    expect(tab.find("#view-classify[aria-current=page]")).to_have_count(1)
    assert parse_qs(urlsplit(tab.page.url).query).keys() == {"view", "upload"}
    tab.page.go_back()
    tab.answered("new.png", tiles=12)
    tab.page.go_forward()
    assert labels(tab) == likeliest(both, NEW)
    tab.page.get_by_role("link", name="Search", exact=True).click()
    tab.answered("new.png", tiles=12)


def test_a_picture_is_dropped_and_its_likeliest_label_told(alone: Service, opened: Open) -> None:
    tab = opened(alone, **LAPTOP).open()
    expect(tab.find(".chips li")).to_have_text(["bird", "car", "cat", "dog", "ship"], timeout=WAIT)
    tab.arrive("drop", ("new.png", NEW))
    assert labels(tab) == likeliest(alone, NEW)
    expect(tab.find("#live")).to_contain_text(f"{likeliest(alone, NEW)[0]}, ", timeout=WAIT)
    expect(tab.find("#query .name")).to_have_text("new.png")
    shares = [each.removesuffix(" %") for each in tab.find(".labels .count").all_text_contents()]
    assert sorted(map(float, shares), reverse=True) == list(map(float, shares))
    tab.choose(("notes.png", b"this is not a picture"))
    tab.notice("That did not work")


def test_a_service_alone_shows_this_view_alone(alone: Service, opened: Open) -> None:
    tab = opened(alone, **LAPTOP).open()
    expect(tab.find("#hero h1")).to_have_text("See what a picture shows", timeout=WAIT)
    expect(tab.find("#views")).to_be_hidden()
    expect(tab.find("#classes-title")).to_have_text("5 labels", timeout=WAIT)
    expect(tab.find(".card")).to_contain_text("90.0 % right: 90 of 100 pictures in cross-validation")
    expect(tab.find("#standing")).to_have_text("5 labels of run-0 · lookalike 2")
    tab.choose(("new.png", NEW))
    labels(tab)
    tab.page.keyboard.press("n")
    expect(tab.find(".chips")).to_be_visible(timeout=WAIT)


def test_a_reload_asks_again_and_a_link_works_in_another_tab(both: Service, opened: Open) -> None:
    tab = opened(both, **LAPTOP).open(f"/?view=classify&id={both.id_of('trip/north/03.png')}")
    found = labels(tab)
    tab.page.reload()
    assert labels(tab) == found
    tab.page.keyboard.press("c")
    tab.answered("03.png", tiles=12)
    tab.page.keyboard.press("c")
    assert labels(tab) == found


def test_several_pictures_and_a_region(alone: Service, opened: Open) -> None:
    tab = opened(alone, **LAPTOP).open()
    tab.choose(("one.png", services.made(3)), ("other.png", services.made(4)))
    assert labels(tab) == [*likeliest(alone, services.made(3)), *likeliest(alone, services.made(4))]
    expect(tab.find(".classified h2")).to_have_text(["one.png", "other.png"])
    expect(tab.find(".combine")).to_have_count(0)
    tab.button("Remove one.png").click()
    expect(tab.find(".labels")).to_have_count(1, timeout=WAIT)
    tab.button("Classify a region").click()
    tab.button("Box in the middle").click()
    tab.button("Classify this region").click()
    tab.page.wait_for_url("**box=0.25,0.25,0.75,0.75**")
    labels(tab)


def test_fewer_labels_can_be_asked_for_by_the_address(alone: Service, opened: Open) -> None:
    tab = opened(alone, **LAPTOP).open()
    tab.choose(("new.png", NEW))
    labels(tab)
    tab.open(f"/?{urlsplit(tab.page.url).query}&top=2")
    assert labels(tab) == likeliest(alone, NEW, 2)
    tab.button("Show 5 labels").click()
    expect(tab.find(".labels li")).to_have_count(5, timeout=WAIT)


def test_the_origin_of_an_answer_is_told_and_another_model_offered_and_not_forced(
    alone: Service, model: PromotedModel, opened: Open
) -> None:
    tab = opened(alone, **LAPTOP).open()
    tab.choose(("new.png", NEW))
    labels(tab)
    tab.page.keyboard.press("d")
    origin = tab.find("#origin-words")
    for text in ("run-0", *(each for name, each in model.commits.as_data().items() if name != "project")):
        expect(origin).to_contain_text(text)
    expect(origin).to_contain_text(f"lookalike classify serve --at {model.commits.select}")
    alone.promoted = SnapshotState("ready", snapshot=replace(model, commits=replace(model.commits, select="9" * 32)))
    tab.page.evaluate("dispatchEvent(new Event('online'))")
    expect(tab.find("#newer")).to_contain_text("Another model has been promoted since.", timeout=WAIT)
    tab.button("Refresh").click()
    expect(tab.find("#newer")).to_be_hidden(timeout=WAIT)
    expect(origin).to_contain_text("9" * 32)


def test_without_a_model_it_says_what_to_do_and_goes_on_by_itself(
    ready: Snapshot, model: PromotedModel, opened: Open
) -> None:
    none = SnapshotState["PromotedModel"]("empty", PromotionSource.empty)
    with services.running(None, promoted=none) as service:
        tab = opened(service, **LAPTOP).open()
        tab.notice("No model is promoted")
        expect(tab.find("#notice code")).to_have_text("lookalike classify promote")
        service.promoted = SnapshotState("ready", snapshot=model)
        expect(tab.find(".chips")).to_be_visible(timeout=WAIT)
    with services.running(ready, promoted=none) as service:
        tab = opened(service, **LAPTOP).open()
        expect(tab.find("#browse .folders li")).to_have_count(2, timeout=WAIT)
        expect(tab.find("#views")).to_be_hidden()


def test_it_fits_a_narrow_window_and_names_everything(both: Service, opened: Open) -> None:
    tab = opened(both, viewport={"width": 360, "height": 800}, has_touch=True).open("/?view=classify")
    expect(tab.find(".chips")).to_be_visible(timeout=WAIT)
    for files in ((), (("new.png", NEW),)):
        if files:
            tab.choose(*files)
            labels(tab)
        assert tabs.violations(tab.page) == []
        assert tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
