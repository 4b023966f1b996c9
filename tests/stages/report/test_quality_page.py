"""The page of pictures that stand out: limits in words, names as text, and how many more there are."""

from stages.quality.picture_flaws import FlawedPicture, PictureFlaw
from stages.record.sources import Source
from stages.report.quality_page import MOST_TILES, page
from tests.stages.pairings import thumbnail
from tests.stages.report.page_documents import PageDocument

HOSTILE = "a&<b>\u202e.jpg"


def test_each_list_has_its_limit_and_its_first_pictures() -> None:
    many = [
        FlawedPicture(number, f"sharpness 0.{number:02}", f"{number:064x}", [Source(HOSTILE, "0" * 64)], thumbnail("x"))
        for number in range(MOST_TILES + 2)
    ]
    lists = [
        PictureFlaw("blurred", "Blurred", "sharpness below 0.2", many),
        PictureFlaw("dark", "Dark", "brightness below 0.15", []),
        PictureFlaw("outlier", "Unlike all others", "", (), "not judged: deploy `neighbours`"),
    ]
    text = page(lists, 40, "0123456789ab")
    document = PageDocument(text)
    assert "40 pictures in the library, commit 0123456789ab" in document.words
    assert "Limit: sharpness below 0.2." in document.words and "Limit: brightness below 0.15." in document.words
    assert "Not judged: deploy `neighbours`." in document.words and "Dark: 0 pictures" in document.words
    assert len(document.alternatives) == MOST_TILES
    assert "<b>.jpg" not in text and "\u202e" not in text
    assert "and 2 pictures more, in quality.jsonl" in document.words
    assert "They do not recommend that anything should go" in document.words
