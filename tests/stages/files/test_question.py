"""Questions: read from JSON and from texts with the same limits, and the part of them that an entry may ask."""

import json
from pathlib import Path
from typing import Any

import pytest

from stages.datum.contract import StageError
from stages.files.question import (
    DEFAULT_K,
    Question,
    QuestionError,
    describe,
    from_json,
    from_texts,
)
from stages.filters.entry_question import entry_json, read_entry
from stages.knn.search_settings import METRICS


def test_a_question_has_defaults_and_a_help_for_every_field() -> None:
    assert Question().k == DEFAULT_K
    assert Question().given == {}
    for name, field in Question.model_fields.items():
        assert describe(name) == field.description and describe(name).endswith(".")
    assert all(from_texts(Question, {"metric": each}).metric == each for each in METRICS)


@pytest.mark.parametrize(
    ("texts", "given"),
    [
        ({"k": "3"}, {"k": 3}),
        ({"filter": "cats/*.png"}, {"filter": "cats/*.png"}),
        ({"filter": ""}, {}),
        ({"metric": "cosine", "combine": "all"}, {"metric": "cosine", "combine": "all"}),
        ({"box": "0,0.25,.5,1"}, {"box": [0, 0.25, 0.5, 1]}),
        ({"max_distance": "0"}, {"max_distance": 0}),
        ({"exact": "false"}, {"exact": False}),
        ({"text": "red bicycle in snow", "without": "snow"}, {"text": "red bicycle in snow", "without": ("snow",)}),
        ({"without": "snow, deep ice ,"}, {"without": ("snow", "deep ice")}),
        ({"text": " ", "without": ","}, {}),
        ({"text": "red\nbicycle \t in\r\nsnow "}, {"text": "red bicycle in snow"}),
        *(({"text": text}, {"text": text}) for text in ("雪の中の赤い自転車", "דלת אדומה", "🚲 🧑‍🚒 ❄️", "x" * 8000)),
    ],
)
def test_texts_and_json_are_one_question(texts: dict[str, str], given: dict[str, Any]) -> None:
    assert from_texts(Question, texts).given == given
    assert from_json(json.dumps(given).encode()) == Question(**given)
    assert from_json(json.dumps(given).encode()).given == given


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("k", "0", "k: input should be greater than or equal to 1"),
        ("k", "1001", "k: input should be less than or equal to 1000"),
        *(("k", text, "k: ") for text in ("many", "--5", "-", "", "\N{ARABIC-INDIC DIGIT THREE}", "1e3", "9" * 5000)),
        ("filter", "x" * 501, "filter: string should have at most 500 characters"),
        ("metric", "manhattan", "metric: input should be 'euclidean' or 'cosine'"),
        ("metric", "", "metric: "),
        ("box", "all", "box: input should be four numbers"),
        *(("box", text, "box: ") for text in ("0,0,1", ",,,")),
        ("box", "0,0,1,2", "box.3: "),
        ("box", "0,0,nan,1", "box.2: "),
        ("box", "0.5,0,0.5,1", "left before right"),
        ("box", "0,1,1,0", "above bottom"),
        ("exact", "perhaps", "exact: "),
        ("combine", "none", "combine: input should be 'any' or 'all'"),
        ("max_distance", "-1", "max_distance: input should be greater than or equal to 0"),
        ("max_distance", "nan", "max_distance: input should be a finite number"),
        ("text", "word " * 10_000, "text: string should have at most 8000 characters"),
        ("text", "red\x00", r"text: it holds a character that is no text \(U\+0000\): leave it out"),
        ("text", "\x1b[31mred", r"text: it holds a character that is no text \(U\+001B\)"),
        ("without", "x" * 8001, "without.0: string should have at most 8000 characters"),
        ("without", "a," * 17, "without: tuple should have at most 16 items"),
        ("colour", "red", "colour is not a field of a question"),
    ],
)
def test_what_is_not_a_question_is_refused_in_words(name: str, text: str, words: str) -> None:
    with pytest.raises(QuestionError, match=words):
        from_texts(Question, {name: text})
    with pytest.raises(QuestionError):
        from_json(json.dumps({name: text}).encode())  # nor are texts numbers of JSON


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"nonsense", b"null", b"\xff", b"\xff\xfe{}", b"{}\x00", b"[]", b"3", b'"text"', b"[" * 100_000),
        *(b'{"k": NaN}', b'{"k": 1, "k": 2}', b'{"k": 3.5}', b'{"k": true}', b'{"k": ' + b"9" * 10_000 + b"}"),
        *(b'{"max_distance": Infinity}', b'{"max_distance": 1e999}', b'{"exact": 1}', b'{"filter": ["a"]}'),
        *(
            b'{"text": ["a"]}',
            b'{"text": "\\ud800"}',
            b'{"without": 3}',
            b'{"without": {"a": 1}}',
            b'{"without": ["a", 3]}',
        ),
        *(b'{"filter":' * 5_000, b'{"filter": "\\ud800"}', b'{"\\ud800": 1}'),
    ],
)
def test_json_is_read_strictly(content: bytes) -> None:
    with pytest.raises(QuestionError):
        from_json(content)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            b'{"metric": "cosine", "box": [0, 0, 1, 0.5]}',
            "box and metric cannot be asked of the pipelines.*lookalike serve",
        ),
        (b'{"combine": "all"}', "combine cannot be asked"),
        (b'{"exact": false}', "exact cannot be asked"),
        (b'{"filter": "{a"}', "without a }"),
        (b'{"where": "width LIKE 1"}', "LIKE takes a text, and width is a number"),
        (b'{"where": "now() > taken"}', r"cannot use now\(\)"),
        (b" " * 100_000, "more than 65,536 bytes"),
        (b'{"k": "3"}', "k: "),
    ],
)
def test_an_entry_asks_only_what_the_pipelines_can_answer(content: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "question.json").write_bytes(content)
    with pytest.raises(StageError, match=words):
        read_entry(tmp_path / "question.json")


def test_equal_questions_of_entries_are_equal_bytes(tmp_path: Path) -> None:
    (tmp_path / "question.json").write_text('{"max_distance": 1, "k": 2,\n "filter": "é/", "metric": null}')
    written = entry_json(read_entry(tmp_path / "question.json"))
    assert written == b'{"filter": "\\u00e9/", "k": 2, "max_distance": 1.0}\n'
    assert written == entry_json(Question(filter="é/", max_distance=1, k=2))
    assert entry_json(Question(where="label = 'cat'")) == b'{"where": "label = \'cat\'"}\n'
