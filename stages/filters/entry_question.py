"""What a query entry asks beside its pictures: its question.json, and its words.

A file of words is one with the ending .txt. Its words are a query of their own, as each picture is.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stages.datum.contract import StageError, load
from stages.files import path_globs, query_texts
from stages.files.packs import Rejection
from stages.files.query_texts import QueryText
from stages.files.question import LONGEST_TEXT, OF_ENTRIES, Question, QuestionError, from_json, validated
from stages.record.pfs_names import QUESTION_FILE, TEXTS_FILE
from stages.record.sources import Source

_MOST_JSON = 1 << 16
"""Bytes of a question.json."""

_MOST_BYTES = 4 * LONGEST_TEXT + 4096
"""Of a file of words: characters in UTF-8, and some white space."""

_WORDS = ("text", "without")

_REFUSED = "Nothing of this entry is searched for until this is corrected"


@dataclass(frozen=True)
class EntryQuestion:
    """What an entry asks beside its pictures. question: without its words, which are among the texts. files: those that
    are no pictures. rejected: those that ask nothing, by their true paths. refused: whether the question cannot be
    answered, so that nothing is asked."""

    question: Question
    texts: Sequence[QueryText]
    files: Collection[Path]
    rejected: Mapping[str, str]
    refused: bool

    def rejections(self, stage: str) -> list[Rejection]:
        """The files that ask nothing, as a stage lists them."""
        return [Rejection(path, stage, reason) for path, reason in self.rejected.items()]

    def write(self, entry: Path, src: str) -> None:
        """Writes `<src>.question.json` and `<src>.texts.jsonl` to the directory of an entry, if they say anything."""
        if self.question.given and not self.refused:
            (entry / f"{src}.{QUESTION_FILE}").write_bytes(entry_json(self.question))
        if self.texts:
            query_texts.write(entry / f"{src}.{TEXTS_FILE}", self.texts)


def read_words(question: tuple[Path, str] | None, files: Mapping[Path, str]) -> EntryQuestion:
    """What an entry asks. question: its question.json with its true path, None without one. files: those of words, with
    their true paths. Raises nothing: whatever people put is rejected in words."""
    files_of = [*files, *([question[0]] if question else [])]
    asked, rejected, texts = Question(), dict[str, str](), list[QueryText]()
    if question is not None:
        file, true = question
        try:
            asked = read_entry(file)
            if asked.text:
                texts.append(query_texts.make(asked.text, asked.without, _source(file, true)))
            elif asked.without and not files:
                raise QuestionError("without takes something away from words: add text")
        except StageError as error:
            return EntryQuestion(Question(), [], files_of, {true: f"{error}. {_REFUSED}"}, True)
    for file, true in files.items():
        try:
            texts.append(query_texts.make(read_text(file), asked.without, _source(file, true)))
        except StageError as error:
            rejected[true] = str(error)
    plain = validated(Question, {name: value for name, value in asked.given.items() if name not in _WORDS})
    return EntryQuestion(plain, texts, files_of, rejected, False)


def read_text(file: Path) -> str:
    """The words in a file. Raises QuestionError, in words, for a file that holds none, or too many."""
    content = _content(file)
    if len(content) > _MOST_BYTES:
        size = file.stat().st_size
        raise QuestionError(f"{size:,} bytes: a text to search for has at most {LONGEST_TEXT:,} characters")
    try:
        text = content.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise QuestionError("this text is not UTF-8: save it as UTF-8") from error
    asked = validated(Question, {"text": text}).text
    if not asked:
        raise QuestionError("the file holds no words to search for")
    return asked


def _content(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(_MOST_BYTES + 1)


def _source(file: Path, true: str) -> Source:
    content = _content(file)
    return Source(true, hashlib.sha256(content).hexdigest(), bytes=len(content))


def read_entry(file: Path) -> Question:
    """The question in an entry's question.json. Raises QuestionError if the pipelines cannot answer it, and FilterError
    for a filter that is not valid."""
    with file.open("rb") as stream:
        content = stream.read(_MOST_JSON + 1)
    if len(content) > _MOST_JSON:
        raise QuestionError(f"it has more than {_MOST_JSON:,} bytes")
    question = from_json(content)
    _check(question)
    return question


def entry_json(question: Question) -> bytes:
    """The content of a question.json; equal questions give equal bytes. Raises as `read_entry`."""
    _check(question)
    return json.dumps(question.given, sort_keys=True).encode("ascii") + b"\n"


def _check(question: Question) -> None:
    if beyond := sorted(question.given.keys() - OF_ENTRIES):
        known = ", ".join(sorted(OF_ENTRIES))
        raise QuestionError(
            f"{' and '.join(beyond)} cannot be asked of the pipelines, which know {known}. "
            "A service can answer: start `lookalike serve`, then use `lookalike query`, its page, or POST /search"
        )
    if path_globs.is_glob(question.filter):
        path_globs.regular_expression(question.filter)  # refuses a bad pattern
    if question.where:
        load("stages.filters.where_clause").check_where(question.where)
