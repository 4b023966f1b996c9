"""Words among the arguments of a query: told from paths, checked, and laid out as the files that entries are."""

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from pipelines.client.backbones import REPO
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library import picture_sources
from pipelines.library.queries import QueryEntries
from stages.backbone.backbone_spec import TEXT_FILE
from stages.datum.contract import load
from stages.files.question import Question, QuestionError, validated
from stages.record.file_kinds import has_picture_extension
from stages.record.pfs_names import TEXT_ENDING, is_text

_PATTERN = re.compile(r"[*?\[]")
_LONGEST_NAME = 50
"""Characters of words that an entry is called by: with their file names in UTF-8 and an ending they fit into 255
bytes."""


@dataclass(frozen=True, slots=True)
class QueryArguments:
    """The arguments of a query: paths of pictures, words that are each asked about, and, for words that are asked about
    together with the pictures, options of the question."""

    paths: list[Path]
    words: list[str]
    options: dict[str, str]


def divided(arguments: Sequence[str], text: str) -> QueryArguments:
    """Arguments as paths and as words. A path that exists is one of pictures, and so is what is written like a path: a
    pattern, something with a picture's ending, or with a / and no space. text: further words, of one question with the
    pictures if there are any. Raises LookalikeError for a path that is not there, for words that are no text, and if
    nothing is given; BadParameter for an empty argument."""
    if "" in arguments:
        raise typer.BadParameter("one is empty (the current directory is .)", param_hint="'PATH|WORDS'")
    paths: list[Path] = []
    words: list[str] = []
    for each in arguments:
        if os.path.lexists(each):
            paths.append(Path(each))
        elif _PATTERN.search(each):
            paths += _matching(each)
        elif _is_path(each):
            raise LookalikeError(f"{each}: not found")
        else:
            words.append(checked(each))
    if text and paths:
        return QueryArguments(paths, words, {"text": checked(text), "combine": "any"})
    words += [checked(text)] if text else []
    if not paths and not words:
        raise LookalikeError('there is nothing to search for: name a picture, or write words, such as "red bicycle"')
    return QueryArguments(paths, words, {})


def checked(words: str) -> str:
    """Words on one line. Raises LookalikeError for none, and for what is no text."""
    try:
        text = validated(Question, {"text": words}).text
    except QuestionError as error:
        raise LookalikeError(str(error)) from error
    if not text:
        raise LookalikeError('there are no words to search for: write some, such as lookalike query "red bicycle"')
    return text


@contextmanager
def laid_out(words: Sequence[str]) -> Iterator[list[Path]]:
    """Files of words until the end of the block, called by these."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as directory:
        files = [Path(directory) / _name(each) for each in words]
        for file, each in zip(files, words, strict=True):
            file.write_text(each, encoding="utf-8")
        yield files


def check_answerable(found: QueryEntries, question: Question) -> None:
    """Raises LookalikeError for a question that the pipelines cannot answer: of pictures and words together, or of
    pictures less words."""
    if question.text:
        raise LookalikeError(
            "the pipelines ask about pictures or about words: start `lookalike serve`, which asks about both in one "
            "question"
        )
    if question.without and found.wordless:
        raise LookalikeError(
            "the pipelines take --without from words alone: start `lookalike serve`, which takes it from pictures, too"
        )


def check_tower(connection: Connection, found: QueryEntries, words: Sequence[str]) -> None:
    """Raises LookalikeError for words where the newest model has no text tower. words: arguments that are not paths,
    which are perhaps paths with a slip in them."""
    if found.worded and not connection.retry(Repository(connection, REPO).exists, f"/{TEXT_FILE}"):
        slip = next((each for each in words if " " not in each), "")
        taken = f"{slip}: there is no such file, and as words: " if slip else ""
        raise LookalikeError(
            f"{taken}{load('stages.backbone.text_tower').NO_WORDS}; the search box of `lookalike serve` finds words in "
            "names and attributes without one"
        )


def _is_path(argument: str) -> bool:
    ended = has_picture_extension(argument) or is_text(argument)
    return ended or ("/" in argument and not re.search(r"\s", argument))


def _matching(pattern: str) -> list[Path]:
    found = picture_sources.expanded([Path(pattern)])
    if found == [Path(pattern)]:
        raise LookalikeError(f"{pattern}: no file matches; words with such characters go with --text")
    return found


def _name(words: str) -> str:
    plain = re.sub(r"[/\\]", "-", words)
    if len(plain) > _LONGEST_NAME:
        plain = f"{plain[:_LONGEST_NAME]}… {hashlib.sha256(words.encode()).hexdigest()[:8]}"
    return f"{plain}{TEXT_ENDING}"
