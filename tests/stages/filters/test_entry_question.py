"""Files of words in query entries: what is asked, and what is refused in words."""

from pathlib import Path

import pytest

from stages.files import query_texts
from stages.files.question import LONGEST_TEXT, QuestionError
from stages.filters.entry_question import read_text, read_words


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"red bicycle\n", "red bicycle"),
        (b"\xef\xbb\xbfred\r\nbicycle\r\n\r\n in\tsnow", "red bicycle in snow"),
        *((text.encode(), text) for text in ("赤い自転車", "أحمر", "👩\u200d🚒 ❄️", "a" * LONGEST_TEXT)),
    ],
)
def test_a_file_of_words_is_one_line(content: bytes, text: str, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(content)
    assert read_text(file) == text


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file holds no words to search for"),
        (b" \n\r\n\t", "the file holds no words to search for"),
        (b"\xff\xfer\0e\0d\0", "this text is not UTF-8: save it as UTF-8"),
        (b"red\0", r"text: it holds a character that is no text \(U\+0000\)"),
        (b"word " * 2000, "text: string should have at most 8000 characters"),
        (b"word " * 20_000, "100,000 bytes: a text to search for has at most 8,000 characters"),
    ],
)
def test_a_file_without_good_words_is_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(content)
    with pytest.raises(QuestionError, match=f"^{reason}"):
        read_text(file)
    assert list(read_words(None, {file: "a.txt"}).rejected) == ["a.txt"]


def test_a_file_of_a_gigabyte_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    with file.open("wb") as stream:
        stream.truncate(1 << 30)
    with pytest.raises(QuestionError, match="^1,073,741,824 bytes: "):
        read_text(file)


def test_without_alone_asks_nothing(tmp_path: Path) -> None:
    question = tmp_path / "question.json"
    question.write_text('{"without": ["snow"]}')
    asked = read_words((question, "a/question.json"), {})
    assert asked.refused and asked.rejected["a/question.json"].startswith("without takes something away from words")


def test_equal_words_are_one_query_of_all_their_files(tmp_path: Path) -> None:
    names = {tmp_path / f"{number}.txt": f"a/{number}.txt" for number in range(3)}
    for file, words in zip(names, ("red", "blue", " red\n"), strict=True):
        file.write_text(words)
    query_texts.write(tmp_path / "out" / "x.texts.jsonl", read_words(None, names).texts)
    read = query_texts.read(tmp_path / "out")
    assert {each.text: [source.path for source in each.sources] for each in read} == {
        "red": ["a/0.txt", "a/2.txt"],
        "blue": ["a/1.txt"],
    }
    assert query_texts.read(tmp_path) == []
