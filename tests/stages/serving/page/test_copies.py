"""Groups of copies in the browser: pages of them, ticks, the review, and the removal that is one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

from tests.stages.serving import copies
from tests.stages.serving.copies import GROUPS, TOKEN, CopyWorld
from tests.stages.serving.page.conftest import Open
from tests.stages.serving.page.tabs import WAIT, violations

if TYPE_CHECKING:
    from stages.serving.follow.snapshots import Snapshot

LAPTOP = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def test_what_is_ticked_and_reviewed_becomes_one_commit(full: CopyWorld, ready: Snapshot, opened: Open) -> None:
    before, commits = full.head, len(full.commits())
    with copies.serving(full, ready) as service:
        tab = opened(service, **LAPTOP).open(f"/?view=copies#token={TOKEN}")
        expect(tab.find("#copies-title")).to_have_text("3 exact copies", timeout=WAIT)
        assert TOKEN not in tab.page.url
        tab.page.get_by_label("Remove trip/two.png", exact=True).check()
        tab.page.get_by_label("Remove backup/two copy.png").check()
        tab.button("Review").click()
        tab.message("all files of the group of trip/two.png would go")
        tab.page.get_by_label("Remove trip/two.png", exact=True).uncheck()
        tab.button("Review").click()
        review = tab.find("#review")
        expect(review.locator("h2")).to_have_text("Remove 1 file?")
        expect(review.locator("bdi")).to_have_text(["backup/two copy.png", "trip/two.png"])
        expect(review).to_contain_text(before[:12])
        assert violations(tab.page) == []
        tab.button("Cancel").click()
        assert full.head == before
        tab.button("Review").click()
        tab.button("Remove 1 file").click()
        expect(tab.find("#done")).to_contain_text("1 copy removed.", timeout=WAIT)
        assert tab.button("Undo: 1 copy removed.").is_visible()
        assert len(full.commits()) == commits + 1
        assert "backup/two copy.png" not in full.names()
        full.write_groups(GROUPS[:1])
        expect(tab.find("#copies-title")).to_have_text("2 exact copies", timeout=WAIT)
        expect(tab.find("#copies-ticked")).to_be_visible()
        tab.page.get_by_role("link", name="Near copies (0)").click()
        expect(tab.find("#copies-groups")).to_have_text("No near copies.")


def test_without_edit_there_are_no_ticks_and_many_groups_come_a_page_at_a_time(
    full: CopyWorld, ready: Snapshot, opened: Open
) -> None:
    full.write_groups([[f"many/{number:04}.png", f"many/{number:04} copy.png"] for number in range(2000)])
    with copies.serving(full, ready, edit=False) as service:
        tab = opened(service, **PHONE).open()
        tab.page.get_by_role("link", name="Copies", exact=True).click()
        expect(tab.find("#copies-said")).to_contain_text("lookalike serve --edit", timeout=WAIT)
        expect(tab.find("#copies-summary")).to_contain_text("in 2,000 groups")
        assert tab.find("#copies input, #copies-ticked:visible").count() == 0
        tab.page.get_by_role("link", name="Next").click()
        expect(tab.find("#copies-pages")).to_contain_text("Groups 51 to 100 of 2,000")
        expect(tab.find("#copies .group h2").first).to_contain_text("Group 51")
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390
        assert violations(tab.page) == []
        tab.page.go_back()
        expect(tab.find("#copies .group h2").first).to_contain_text("Group 12 files")
        tab.page.get_by_role("link", name="Search", exact=True).click()
        expect(tab.find("#browse h2")).to_be_visible(timeout=WAIT)
