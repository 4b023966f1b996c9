"""The command that follows an answer back to the files it came from."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Annotated

import typer
from rich.markup import escape

from pipelines.analysis.tracing import trace_page, trace_text, tracer, traces
from pipelines.analysis.tracing.traces import (
    AnswerTrace,
    PictureOrigin,
    PictureTrace,
    TraceModel,
    TracePicture,
    TraceStep,
)
from pipelines.client.commit_sets import commit_at
from pipelines.client.server.connection import Connection
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_connection
from pipelines.commands.kit.options import AddressOption, JsonOption, output_option
from pipelines.commands.kit.terminal import console, display_path, say, say_json
from pipelines.library.result_sheets import directory_name
from stages.datum.text_format import visible

app = App()


@app.command(
    examples=(
        "lookalike trace mine.jpg",
        "lookalike trace mine.jpg --rank 2 --at 2026-11-01",
        "lookalike trace sample-queries --query astronaut-1.png --json",
        "lookalike trace --picture holiday/beach.jpg",
    )
)
def trace(
    entry: Annotated[
        str, typer.Argument(metavar="ENTRY", help="A query entry by name, see `lookalike results`.", show_default=False)
    ] = "",
    query: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="A picture of the entry by name, or the start of its id [default: the first]."
        ),
    ] = "",
    rank: Annotated[int, typer.Option(metavar="NUMBER", help="The number of its neighbour, from 1, the nearest.")] = 1,
    at: Annotated[
        str, typer.Option(metavar="COMMIT|DATE", help="The answer as of a commit id, an ancestor, or a date.")
    ] = "",
    picture: Annotated[
        str, typer.Option(metavar="NAME|ID", help="In place of an entry: a picture of the library, by name or by id.")
    ] = "",
    output: Annotated[Path | None, output_option("Where the page goes [default: results].", "DIR|FILE")] = None,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Follow a neighbour back: every file, datum, job, model and commit that led to it, as a tree and as a page.

    With --picture, a picture of the library is followed to its files, as it stands in the index. With --json, the page
    is written only if --output names its place.
    """
    if bool(entry) == bool(picture):
        raise typer.BadParameter("name an entry, or a picture of the library with --picture")
    connection = open_connection(address)
    if picture:
        found: AnswerTrace | PictureTrace = connection.retry(_picture, connection, picture, at)
    else:
        found = connection.retry(tracer.trace, connection, entry, query, rank, at)
    page = None if as_json and output is None else _written(found, output or Path("results"))
    if as_json:
        say_json(traces.as_data(found))
        return
    _show(found)
    if page is not None:
        say(f"page: {display_path(page)}")


def _picture(connection: Connection, picture: str, at: str) -> PictureTrace:
    id_, name, commit = tracer.find(connection, picture, commit_at(connection, at) if at else "")
    return tracer.picture(connection, id_, name, commit)


def _written(found: AnswerTrace | PictureTrace, output: Path) -> Path:
    """Writes the page to a file, or to a directory in the entry's own; returns its path."""
    path = output
    if output.suffix.lower() not in (".html", ".htm"):
        pictured = found.pictures[0]
        name = trace_text.name(pictured).rpartition("/")[2]
        safe = re.sub(r"[^\w.-]+", "-", name)[-80:].strip("-.") or trace_text.short(pictured.id)
        of_entry = f"{directory_name(found.entry)}/trace-{safe}-{found.rank}" if isinstance(found, AnswerTrace) else ""
        path = output / f"{of_entry or f'trace-{safe}'}.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(trace_page.page(found), encoding="utf-8")
    return path


@dataclass(frozen=True, slots=True)
class _Node:
    """A line of the tree with the lines below it: the repo, the file, facts, and that from which it was made."""

    repo: str
    title: str
    facts: Sequence[str]
    made_from: Sequence["_Node"] = ()


def _show(found: AnswerTrace | PictureTrace) -> None:
    if isinstance(found, AnswerTrace):
        what, tree = trace_text.answer(found), _tree(found)
    else:
        what, tree = f"picture {trace_text.short(found.picture.id)}", _picture_tree(found)
    title = escape(visible(trace_text.title(found)))
    console.print(f"[bold]{title}[/]", highlight=False, emoji=False, soft_wrap=True)
    say(f"{what}; commit {found.commit} of {trace_text.moment(found.began)}")
    say("")
    for line in _lines(tree):
        console.print(line, highlight=False, emoji=False, soft_wrap=True)
    say("")
    failed = [each.statement for each in found.checks if not each.holds]
    console.print(f"[{'red' if failed else 'green'}]{trace_text.checked(found)}[/]", highlight=False, soft_wrap=True)
    for each in failed:
        say(f"  not true: {each}")
    for gap in found.gaps:
        say(f"  not followed: {gap}")


def _tree(found: AnswerTrace) -> _Node:
    """The path from the answer back to the files."""
    model, again = _models(found.model)
    asked, library = _pictured(found.query, model, again), _pictured(found.neighbour, again, again)
    return _step(found.render, [_step(found.search, [*asked, _step(found.index, library)])])


def _picture_tree(found: PictureTrace) -> _Node:
    """The path from the index back to the files."""
    return _step(found.index, _pictured(found.picture, *_models(found.model)))


def _models(model: TraceModel) -> tuple[_Node, _Node]:
    """The model with its facts, and without them, for all places but the first."""
    facts = [f"hash {trace_text.short(model.sha256)}", *trace_text.put(model.file)]
    return _Node("models", model.name, facts), _Node("models", f"{model.name}, as above", [])


def _pictured(picture: TracePicture, model: _Node, again: _Node) -> list[_Node]:
    """The steps of partition, or without one those of features, for all sources of a picture. model: that of the first
    vector; again: that of all others."""
    nodes: list[_Node] = []
    for partition, dealt in trace_text.by_partition(picture):
        computed = []
        for each in dealt:
            computed.append(_features(*each, model))
            model = again
        nodes += computed if partition is None else [_step(partition, computed)]
    return nodes


def _features(step: TraceStep, origins: Sequence[PictureOrigin], model: _Node) -> _Node:
    files = [_Node(each.file.repo, each.name, list(trace_text.source(each))) for each in origins]
    made = [_step(origin.preprocess, [file]) for origin, file in zip(origins, files, strict=True)]
    return _step(step, [model, *made])


def _step(step: TraceStep, made_from: Sequence[_Node]) -> _Node:
    return _Node(step.pipeline, step.path, list(trace_text.computed(step)), made_from)


def _lines(node: _Node, first: str = "", rest: str = "") -> Iterator[str]:
    """The lines of a tree as markup, wrapped between words only: no name or id is cut."""
    below = rest + ("│ " if node.made_from else "  ")
    width = max(console.width - len(below), 30)
    title, *more = _wrapped(f"{node.repo} {visible(node.title)}", width) or [node.repo]
    yield f"[dim]{first}[/][bold cyan]{node.repo}[/]{escape(title.removeprefix(node.repo))}"
    for text in (*more, *(line for fact in node.facts for line in _wrapped(visible(fact), width))):
        yield f"[dim]{below}{escape(text)}[/]"
    for number, each in enumerate(node.made_from, start=1):
        last = number == len(node.made_from)
        yield from _lines(each, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(text, width, break_long_words=False, break_on_hyphens=False)
