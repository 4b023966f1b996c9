"""The page of two moments: its texts, its limits, and names that look like markup."""

from datetime import UTC, datetime

from pipelines.analysis.changes.answer_comparison import AnswerComparison, QueryDifference
from pipelines.analysis.changes.commit_pictures import PictureChanges
from pipelines.analysis.changes.comparison_page import page
from pipelines.analysis.changes.difference_reasons import MODEL, REMOVED, SHIFTED, NeighbourDifference
from pipelines.analysis.changes.library_state import LibraryState
from pipelines.analysis.changes.pipeline_versions import SettingChange
from pipelines.analysis.query_answers import AnswerNeighbour, AnswerPair, QueryAnswer

STRANGE = "<script>\u202e\"'&.jpg"


def comparison(questions: int) -> AnswerComparison:
    """So many queries of a strange name, each with a picture that went and one that moved."""
    old, new = (LibraryState(f"{number}" * 32, datetime(2026, 11, number, tzinfo=UTC), {}, {}) for number in (1, 2))
    gone, kept = (
        AnswerNeighbour("a" * 64, 0.25, (STRANGE,)),
        AnswerNeighbour("b" * 64, 0.5, ("b.jpg", "c.jpg", "d.jpg")),
    )
    found = []
    for number in range(questions):
        name = (f"{number}-{STRANGE}",)
        before = QueryAnswer("entry", "q", name, (gone, kept), 2, "euclidean", "m", "b")
        after = QueryAnswer("entry", "q", name, (kept,), 2, "euclidean", "m", "b")
        differences = (
            NeighbourDifference(kept, kept, 2, 1, ((SHIFTED, "x went"),)),
            NeighbourDifference(gone, None, 1, None, ((REMOVED, ""), (MODEL, "another model"))),
        )
        found.append(QueryDifference(AnswerPair(before, after), differences))
    setting = SettingChange("METRIC", "euclidean", STRANGE, ("search",))
    pictures = PictureChanges(removed=(STRANGE,))
    apart = QueryAnswer("entry", "n", (STRANGE,), (), 2, "euclidean", "m", "b")
    return AnswerComparison(old, new, tuple(found), (apart,) * 25, (), pictures, ("one", ""), (setting,))


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
    assert "default-src 'none'" in text


def test_reasons_are_counted_by_query() -> None:
    assert comparison(3).reasons == {MODEL: 3, SHIFTED: 3, REMOVED: 3}
