"""The page of two moments: its texts, its limits, and names that look like markup."""

from datetime import UTC, datetime

from pipelines.explaining.changes.comparing import Comparison, Question
from pipelines.explaining.changes.contents import Changed
from pipelines.explaining.changes.pages import page
from pipelines.explaining.changes.reasons import MODEL, REMOVED, SHIFTED, Difference
from pipelines.explaining.changes.replies import Reply, Tile, Two
from pipelines.explaining.changes.settings import Setting
from pipelines.explaining.changes.states import State

STRANGE = "<script>\u202e\"'&.jpg"


def comparison(questions: int) -> Comparison:
    """So many queries of a strange name, each with a picture that went and one that moved."""
    old, new = (State(f"{number}" * 32, datetime(2026, 11, number, tzinfo=UTC), {}, {}) for number in (1, 2))
    gone, kept = Tile("a" * 64, 0.25, (STRANGE,)), Tile("b" * 64, 0.5, ("b.jpg", "c.jpg", "d.jpg"))
    found = []
    for number in range(questions):
        name = (f"{number}-{STRANGE}",)
        before = Reply("entry", "q", name, (gone, kept), 2, "euclidean", "m", "b")
        after = Reply("entry", "q", name, (kept,), 2, "euclidean", "m", "b")
        differences = (
            Difference(kept, kept, 2, 1, ((SHIFTED, "x went"),)),
            Difference(gone, None, 1, None, ((REMOVED, ""), (MODEL, "another model"))),
        )
        found.append(Question(Two(before, after), differences))
    setting = Setting("METRIC", "euclidean", STRANGE, ("search",))
    pictures = Changed(removed=(STRANGE,))
    apart = Reply("entry", "n", (STRANGE,), (), 2, "euclidean", "m", "b")
    return Comparison(old, new, tuple(found), (apart,) * 25, (), pictures, ("one", ""), (setting,))


def test_the_page_says_all_and_no_name_is_markup() -> None:
    compared = comparison(3)
    text = page(compared, compared.questions[:2], {}, {("old", "a" * 64): b"JPEG"})
    assert "<script" not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;" in text
    assert text.count('<section class="card"') == 2
    assert "Shown: 2 of 3" in text
    assert "gone: picture removed; another model" in text
    assert "was 2" in text
    assert "and 5 more" in text
    assert text.count("data:image/jpeg;base64,") == 2
    assert "and 1 more name<" in text
    assert "model: one → none" in text
    assert "default-src &#x27;none&#x27;" in text


def test_reasons_are_counted_by_query() -> None:
    assert comparison(3).reasons == {MODEL: 3, SHIFTED: 3, REMOVED: 3}
