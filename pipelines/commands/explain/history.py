"""The command `history`: the changes of the library, or of one picture."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, replace
from itertools import islice
from typing import Annotated, Any

import typer

from pipelines.analysis.changes.answer_counts import AnswerCount
from pipelines.analysis.changes.commit_pictures import PREPROCESS, PictureChanges
from pipelines.analysis.changes.comparison_text import few, setting
from pipelines.analysis.changes.library_history import CHANGING, DEPLOYMENT, LibraryChange, LibraryHistory
from pipelines.commands.kit import interrupts
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_connection
from pipelines.commands.kit.options import AddressOption, JsonOption, LimitOption
from pipelines.commands.kit.terminal import console, local_time, say, say_json
from pipelines.errors import LookalikeError
from pipelines.library.content_cache import ContentCache, default_path
from pipelines.library.snapshots import FETCHED
from pipelines.specifications.pipeline_specs import SOURCES
from stages.datum.text_format import counted, first_of
from stages.record.pfs_names import is_block, unescape

app = App()

_SHORT = 12
"""Digits of an id: enough for --at."""

_BEGIN = {
    "images": "add pictures with `lookalike add`",
    "queries": "search for pictures with `lookalike query`",
    "models": "push a backbone with `lookalike model push efficientnet-lite0`",
    "labels": "put labels with `lookalike evaluate --labels FILE`",
    DEPLOYMENT: "create pipelines with `lookalike deploy`",
}
"""The way to the first change of a repo."""

_NAMED = 3
"""Most pictures of a change that are named."""


@app.command(
    examples=(
        "lookalike history",
        "lookalike history queries --limit 5",
        "lookalike history holiday/beach.jpg",
        "lookalike history --json --no-answers",
    )
)
def history(
    which: Annotated[
        str,
        typer.Argument(
            metavar="PATH|REPO",
            help="A picture's name, a folder of names, or images, queries, models, labels or pipelines [default: "
            "all changes].",
        ),
    ] = "",
    limit: LimitOption = 20,
    answers: Annotated[
        bool, typer.Option("--answers/--no-answers", help="Count the answers that each change made different.")
    ] = True,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Show the changes of the library, the newest first: when, by whom, and their effect.

    With the name of a picture, the commits that added, replaced or removed it.
    """
    connection = open_connection(address)
    of_one = bool(which) and which not in (*SOURCES, FETCHED, DEPLOYMENT)

    def read() -> list[LibraryChange]:
        changes = LibraryHistory(connection, ContentCache(default_path()))
        repos = [which] if which else (*CHANGING, DEPLOYMENT)
        found = _of_picture(changes, which) if of_one else changes.newest_first(repos)
        shown: list[LibraryChange] = []
        for each in islice(found, limit):
            interrupts.check()
            shown.append(changes.with_answers(each) if answers else each)
        return shown

    with console.status("reading") if console.is_terminal and not as_json else nullcontext():
        shown = connection.retry(read)
    if not shown:
        _nothing(which, of_one)
    if as_json:
        say_json([_data(each, of_one) for each in shown])
    else:
        for each in shown:
            _show(each)


def _of_picture(changes: LibraryHistory, word: str) -> Iterator[LibraryChange]:
    """The changes of a picture, or of all below a folder, with no others in them."""
    name = word.removeprefix("./").rstrip("/")

    def concerns(entry: str) -> bool:
        true = unescape(entry)
        return (
            is_block(entry)
            or entry.endswith("%")
            or true == name
            or true.startswith(f"{name}/")
            or name.startswith(f"{true}/")
        )

    for each in changes.newest_first(list(PREPROCESS), concerns):
        pictures = PictureChanges() if each.pictures is None else each.pictures.only(name)
        if pictures:
            yield replace(each, pictures=pictures)


def _show(change: LibraryChange) -> None:
    """Prints a change: its id, time, author and description, and below these what it changed."""
    by = ": ".join(filter(None, (change.author, change.description)))
    console.print(f"{change.id[:_SHORT]}  {local_time(change.started)}", style="bold", end="  ", highlight=False)
    say(by or f"{'deployed ' if change.repo == DEPLOYMENT else ''}by an unknown author")
    for line in _lines(change):
        say(f"  {line}")


def _lines(change: LibraryChange) -> Iterator[str]:
    if change.open:
        yield f"{change.repo}: open, nothing in it yet"
        return
    if change.error:
        yield f"{change.repo}: failed: {change.error}"
        return
    done = [*_pictures(change), *_models(change), *_deployed(change)]
    done += [line for each in change.beside for line in _pictures(each)]
    yield from done or ["nothing changed"]
    if change.answers is not None:
        yield f"answers: {_answers(change.answers)}"
    elif change.state:
        yield "answers: missing, since a job failed" if change.state == "failed" else "answers: not computed yet"


def _pictures(change: LibraryChange) -> Iterator[str]:
    if change.pictures is None:
        if change.files and change.model is None:
            changed = counted(len(change.files), "file", "files")
            yield f"{change.repo}: {changed} changed: {first_of(change.files, _NAMED)}"
        return
    parts = [
        f"{words} {few(names)}"
        for words, names in (
            ("added", change.pictures.added),
            ("replaced", change.pictures.changed),
            ("removed", change.pictures.removed),
            ("rejected", change.pictures.rejected),
        )
        if names
    ]
    if parts:
        yield f"{change.repo}: {'; '.join(parts)}"


def _models(change: LibraryChange) -> Iterator[str]:
    if change.model is not None and change.model[0] != change.model[1]:
        before, after = change.model
        yield f"model: {f'{before} → ' if before else ''}{after or 'removed'}"


def _deployed(change: LibraryChange) -> Iterator[str]:
    if change.created:
        yield f"pipelines created: {', '.join(change.created)}"
    yield from map(setting, change.settings)
    if change.reprocessed:
        yield f"computed again: {', '.join(change.reprocessed)}"


def _answers(count: AnswerCount) -> str:
    parts = [f"{number:,} {words}" for words, number in asdict(count).items() if number]
    return ", ".join(parts) or "none changed"


def _data(change: LibraryChange, named: bool) -> dict[str, Any]:
    """A change for --json. named: whether to list the names of its pictures, besides their numbers."""
    data = {"id": change.id, **asdict(change)}
    if change.pictures is not None:
        lists = asdict(change.pictures)
        data["pictures"] = lists if named else {name: len(each) for name, each in lists.items()}
    if change.model is not None:
        data["model"] = dict(zip(("before", "after"), change.model, strict=True))
    return data


def _nothing(which: str, of_one: bool) -> None:
    if of_one:
        raise LookalikeError(
            f"no commit has added, replaced or removed a picture {which}: `lookalike history` lists all changes, and "
            f"`lookalike commits {which}` those of a repo of that name"
        )
    say(f"no changes yet: {_BEGIN.get(which, _BEGIN['images'])}")
