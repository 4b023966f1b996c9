"""The texts of a result sheet, shared by the grid and the page: its title, its summary, its notes and picture names.

Knows the answers' values only: no drawing, no markup. Returns plain text; whoever shows it escapes it.
"""

from __future__ import annotations

from stages.datum.text_format import EMPTY_LIBRARY, NOTHING_TO_ASK, counted, enumerated, limited, small_library
from stages.quality.entry_answers import EntryAnswers, QueryAnswer, QueryMatch
from stages.record.framing import CROP, PAD
from stages.record.sources import paths

_FRAMING = {
    PAD: "Pictures are shown whole and scaled down; they are compared on squares of their borders' colours.",
    CROP: "Pictures are shown as they are compared: cropped to the central square and scaled down.",
}

NOTHING_SIMILAR = "Nothing in the library looks similar. These are the nearest."

WORDS_APART = (
    "Distances of pictures from words are on another scale than those between pictures: compare them only with each "
    "other."
)

UNNAMED = "(name unknown)"
"""Shown for a query whose own table is missing."""


def title(answers: EntryAnswers) -> str:
    """The headline of the entry's sheet."""
    asked = [each.words.text for each in answers.answers if each.words is not None]
    return f"Nearest pictures for “{asked[0] if len(asked) == len(answers.answers) == 1 else answers.entry}”"


def summary(answers: EntryAnswers, shown: int, limit: int) -> str:
    """One line on the sheet's content: queries, their nearest (at most `limit`), metric, backbone."""
    total = len(answers.answers)
    texts = sum(each.words is not None for each in answers.answers)
    kinds = [("query picture", "query pictures", total - texts), ("text", "texts", texts)]
    queries = enumerated([counted(count, one, many) for one, many, count in kinds if count or not (texts or total)])
    if shown < total:
        queries = f"{shown:,} of {queries}"
    if not answers.answers or not answers.searched:
        return queries
    k = min(limit, answers.library_size or answers.k)
    nearest = counted(k, "nearest picture", "nearest pictures")
    by = f"{answers.metric} distance"
    if answers.origin is not None and answers.origin.backbone:
        by += f" with {answers.origin.backbone}"
    return f"{queries}, each with its {nearest} by {by}"


def notes(answers: EntryAnswers) -> list[str]:
    """Notes that a reader needs to understand the sheet, the most important first; empty if all is as expected."""
    said = []
    total = len(answers.answers)
    if total == 0:
        said.append(NOTHING_TO_ASK)
    elif not answers.searched:
        said.append(EMPTY_LIBRARY)
    elif answers.limits:
        said.append(limited(answers.limits))
    elif answers.library_size is not None:
        said.append(small_library(answers.library_size, answers.k))
    if any(each.words is not None for each in answers.answers):
        said.append(WORDS_APART)
    unread = [each.words.unread for each in answers.answers if each.words is not None and each.words.unread]
    if unread:
        said.append(f"The model did not read the end of a text: “{unread[0]}”.")
    if answers.rejected:
        files = counted(len(answers.rejected), "file", "files")
        verb = "was" if len(answers.rejected) == 1 else "were"
        said.append(f"{files} in this entry {verb} rejected.")
    pictured = sum(answer.pictured for answer in answers.answers)
    if pictured < total:
        said.append(
            f"Neighbours are shown as pictures for {pictured:,} of the {total:,} queries, by name for the others."
        )
    return said


def nothing(answers: EntryAnswers) -> str:
    """A sentence in place of a query's neighbours, if there are none."""
    if answers.searched and answers.limits:
        return "No picture of the library fits the question."
    return "The library has no pictures to compare with."


def framing(answers: EntryAnswers) -> list[str]:
    """A sentence on the part of a picture that is shown and compared; none for an entry without pictures."""
    return [_FRAMING[answers.origin.fit]] if answers.origin is not None and answers.origin.fit in _FRAMING else []


def without(answer: QueryAnswer) -> str:
    """What the pictures for words should not show, in words; "" for nothing."""
    return f"without {enumerated(answer.words.without)}" if answer.words is not None and answer.words.without else ""


def name(pictured: QueryAnswer | QueryMatch) -> str:
    """The first of a picture's true names."""
    return next(iter(paths(pictured.sources)), UNNAMED)
