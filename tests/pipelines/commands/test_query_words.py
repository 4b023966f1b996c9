"""Words among the arguments of a query: told from paths, named, and refused before anything is put."""

from pathlib import Path

import pytest

from pipelines.client.commit_writer import CommitWriter
from pipelines.client.server.connection import Connection
from pipelines.commands.ask import query_words
from pipelines.errors import LookalikeError
from tests.command import Command

pytestmark = pytest.mark.late_alone


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("a.jpg", "red bicycle", "snow.txt"):
        (tmp_path / name).write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("argument", "paths", "words"),
    [
        ("a.jpg", ["a.jpg"], []),
        ("red bicycle", ["red bicycle"], []),
        ("*.jpg", ["a.jpg"], []),
        ("snow.txt", ["snow.txt"], []),
        ("red bicycle in snow", [], ["red bicycle in snow"]),
        (" red\n bicycle ", [], ["red bicycle"]),
        ("bicycle", [], ["bicycle"]),
        ("black / white", [], ["black / white"]),
        ("雪 🚲", [], ["雪 🚲"]),
    ],
)
def test_words_are_what_is_not_called_like_a_file(
    argument: str, paths: list[str], words: list[str], here: Path
) -> None:
    found = query_words.divided([argument], "")
    assert ([str(each) for each in found.paths], found.words, found.options) == (paths, words, {})


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ("gone.jpg", "gone.jpg: not found"),
        ("gone.TXT", "gone.TXT: not found"),
        ("holiday/beach", "holiday/beach: not found"),
        ("holiday 2/*.png", r"holiday 2/\*.png: no file matches; words with such characters go with --text"),
        ("what is this?", "no file matches; words"),
        (" \t", "there are no words to search for"),
        ("red\x00", r"text: it holds a character that is no text \(U\+0000\)"),
        ("word " * 10_000, "text: string should have at most 8000 characters"),
        ("red \udcff", "text: "),
    ],
)
def test_what_is_neither_is_refused_with_the_reason(argument: str, says: str, here: Path) -> None:
    with pytest.raises(LookalikeError, match=f"^{says}" if says[0] != "n" else says):
        query_words.divided([argument], "")


def test_text_beside_pictures_is_one_question(here: Path) -> None:
    beside = query_words.divided(["a.jpg"], "what is  this?")
    assert (beside.words, beside.options) == ([], {"text": "what is this?", "combine": "any"})
    assert query_words.divided(["snow"], "what?").words == ["snow", "what?"]
    with pytest.raises(LookalikeError, match="there is nothing to search for"):
        query_words.divided([], "")


@pytest.mark.parametrize("words", ["red bicycle", "black / white", "🚲" * 4000, "a\\b", ".", "x" * 8000])
def test_an_entry_of_words_is_called_by_them(words: str) -> None:
    with query_words.laid_out([words]) as (file,):
        assert file.read_text(encoding="utf-8") == words
        assert file.name.startswith(words[:3].replace("\\", "-")) and file.name.endswith(".txt")
    assert not file.exists()


def test_a_model_without_words_says_so_before_anything_is_put(
    as_user: Connection, sheets: Connection, command: Command
) -> None:
    before = CommitWriter(as_user, "queries").newest()
    (command.directory / "snow.txt").write_text("snow")
    for given in (["snow"], ["snow.txt"], ["--text", "what is this?"], ["red snow", "--without", "ice"]):
        refused = command.fails("query", *given).removeprefix("snow: there is no such file, and as words: ")
        assert refused.startswith("the model has no text tower, so it finds nothing by words: get one")
        assert "lookalike model push" in refused and "names and attributes" in refused
    assert command.fails("query", "chelsae").startswith("chelsae: there is no such file, and as words: the model has")
    together = command.fails("query", "snow.txt", "--text", "red", "--pipeline")
    assert together.startswith("the pipelines ask about pictures or about words: start `lookalike serve`")
    assert CommitWriter(as_user, "queries").newest() == before
