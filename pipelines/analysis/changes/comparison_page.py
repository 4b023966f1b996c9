"""Two moments side by side as one self-contained HTML file: for each query the old row of neighbours above the new one,
with the reason at each picture that differs.

Pure: takes values and returns text.
"""

from collections.abc import Mapping, Sequence

from pipelines.analysis.changes.answer_comparison import AnswerComparison, QueryDifference
from pipelines.analysis.changes.comparison_text import changed, moment, reasons, summary
from pipelines.analysis.changes.difference_reasons import (
    ADDED,
    MODEL,
    PARAMETERS,
    QUERY,
    REMOVED,
    REPLACED,
    SHIFTED,
    NeighbourDifference,
)
from pipelines.analysis.query_answers import AnswerNeighbour
from stages.report import markup

EntryThumbnails = Mapping[tuple[str, str], bytes]
"""JPEG files by the moment, "old" or "new", and the id."""

_KINDS = {ADDED: "good", REMOVED: "bad", REPLACED: "other"}


def page(
    comparison: AnswerComparison,
    shown: Sequence[QueryDifference],
    names: Mapping[str, str],
    thumbnails: EntryThumbnails,
) -> str:
    """The page as text for a UTF-8 file, with the questions `shown`. names: of entries, by their PFS names."""
    return markup.fill(
        "differences.html",
        comparison=comparison,
        shown=shown,
        names=names,
        thumbnails=thumbnails,
        summary=summary(comparison),
        moment=moment,
        lines=[*changed(comparison), *reasons(comparison)],
        marks=_marks,
    )


def _marks(question: QueryDifference, when: str) -> Sequence[tuple[AnswerNeighbour, str, str]]:
    """The neighbours of the moment, "old" or "new": each with the kind of its difference and the reason in words."""
    found = {id(getattr(each, when)): each for each in question.differences}
    return [(tile, *_mark(found.get(id(tile)), when)) for tile in getattr(question.two, when).tiles]


def _mark(difference: NeighbourDifference | None, when: str) -> tuple[str, str]:
    if difference is None:
        return "same", ""
    first = difference.reasons[0][0]
    if first == SHIFTED:
        return "same", f"was {difference.old_rank}" if when == "new" else ""
    return _KINDS.get(first, "other"), _why(difference)


def _why(difference: NeighbourDifference) -> str:
    said = "; ".join(
        words if reason in (MODEL, PARAMETERS, QUERY) else f"{reason} {words}".rstrip()
        for reason, words in difference.reasons
    )
    if difference.old_rank is None:
        return f"new: {said}"
    if difference.new_rank is None:
        return f"gone: {said}"
    return f"{difference.old_rank} → {difference.new_rank}: {said}"
