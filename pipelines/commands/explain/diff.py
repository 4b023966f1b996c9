"""The command `diff`: the answers of two moments compared."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from pipelines.analysis.changes import library_state
from pipelines.analysis.changes.answer_comparison import AnswerComparison, QueryDifference, compare
from pipelines.analysis.changes.comparison_page import page
from pipelines.analysis.changes.comparison_text import changed, moment, reasons, summary
from pipelines.analysis.changes.difference_reasons import PUSHED, ROSE, SHIFTED, NeighbourDifference
from pipelines.analysis.changes.library_state import LibraryState
from pipelines.client import commit_sets
from pipelines.client.server.connection import Connection
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_connection
from pipelines.commands.kit.options import AddressOption, JsonOption, output_option
from pipelines.commands.kit.terminal import console, display_path, say, say_all, say_json
from pipelines.library.content_cache import ContentCache, default_path
from pipelines.library.queries import true_name
from stages.datum.text_format import counted, distance, visible
from stages.report.query_sample import sheet_queries

app = App()

_ON_THE_PAGE = 100
_ON_THE_TERMINAL = 10
_SHORT = 8


@app.command(
    examples=(
        "lookalike diff 97819ef4692b",
        "lookalike diff yesterday",
        "lookalike diff 2026-11-01 2026-11-20",
        "lookalike diff master^ --json",
    )
)
def diff(
    old: Annotated[str, typer.Argument(metavar="A", help="A commit id (or prefix), an ancestor, or a date.")],
    new: Annotated[str, typer.Argument(metavar="B", help="The same, for the later moment [default: now].")] = "",
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            "-n",
            min=1,
            help=f"The most queries to show [default: {_ON_THE_TERMINAL}; {_ON_THE_PAGE} on the page].",
        ),
    ] = None,
    output: Annotated[Path, output_option("The directory to write the page to.")] = Path("results"),
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Show whose neighbours changed between two commits or dates, and why, also as a page, side by side.

    Ids are as in `lookalike history`. An answer changes because pictures of the library were added, replaced or
    removed, because of another model, or of other parameters.
    """
    connection = open_connection(address)
    with console.status("comparing"):
        before, after = (connection.retry(library_state.at, connection, each) for each in (old, new))
        found = connection.retry(compare, connection, before, after, ContentCache(default_path()))
        write = partial(_write, connection, found, output, limit or _ON_THE_PAGE)
        written = connection.retry(write) if found.questions else None
    if as_json:
        say_json({**_data(found), "page": written})
        return
    say(f"{moment(before)} → {moment(after)}: {summary(found)}")
    say_all(f"  {line}" for line in (*changed(found), *reasons(found)))
    if before.id == after.id and commit_sets.is_to_come(old):
        say(f"  {old} means now, as a date is the end of its day: `lookalike diff yesterday` shows today's changes")
    for each in found.questions[: limit or _ON_THE_TERMINAL]:
        _show(each)
    rest = len(found.questions) - (limit or _ON_THE_TERMINAL)
    if rest > 0:
        say(f"and {counted(rest, 'query', 'queries')} more")
    if written is not None:
        say(f"side by side: {display_path(written)}")


def _write(connection: Connection, found: AnswerComparison, directory: Path, most: int) -> Path:
    """Writes the page with at most so many queries, those with pictures first; returns its path."""
    shown = _chosen(found.questions, most)
    names: dict[str, str] = {}
    pictures: dict[tuple[str, str], bytes] = {}
    for entry in dict.fromkeys(each.entry for each in shown):
        names[entry] = true_name(connection, entry, found.new.commits.get("queries", ""))
        replies = [(("old", each.two.old), ("new", each.two.new)) for each in shown if each.entry == entry]
        for state, which in ((found.old, "old"), (found.new, "new")):
            of_state = [reply for pair in replies for name, reply in pair if name == which]
            ids = {id_ for reply in of_state for id_ in (reply.id, *(tile.id for tile in reply.tiles))}
            of_entry = library_state.thumbnails(connection, state, entry, ids)
            pictures |= {(which, id_): content for id_, content in of_entry.items()}
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"diff-{found.old.id[:_SHORT]}-{found.new.id[:_SHORT]}.html"
    file.write_text(page(found, shown, names, pictures), encoding="utf-8", newline="\n")
    return file


def _chosen(questions: Sequence[QueryDifference], most: int) -> list[QueryDifference]:
    """At most so many, those whose pictures a result sheet shows first: of others there are no thumbnails."""
    by_entry: dict[str, list[QueryDifference]] = {}
    for each in questions:
        by_entry.setdefault(each.entry, []).append(each)
    drawn = {
        (entry, id_) for entry, of_it in by_entry.items() for id_ in sheet_queries(entry, [e.two.new.id for e in of_it])
    }
    return sorted(questions, key=lambda each: (each.entry, each.two.new.id) not in drawn)[:most]


def _show(question: QueryDifference) -> None:
    names = question.two.new.sources or (question.entry,)
    say(f"{', '.join(names[:2])}")
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for justify in ("right", "right", "left", "left"):
        table.add_column(justify=justify, overflow="fold")
    for each in question.differences:
        ranks = f"{each.old_rank or '–'} → {each.new_rank or '–'}"
        name = ", ".join(each.tile.sources[:2])
        table.add_row(*map(_cell, (f"  {ranks}", distance(each.tile.distance), name, _because(each))))
    console.print(table)


def _cell(text: str) -> Text:
    return Text(visible(text))


def _because(difference: NeighbourDifference) -> str:
    said = (
        f"{reason}: {words}" if reason in (PUSHED, ROSE, SHIFTED) else words or reason
        for reason, words in difference.reasons
    )
    return "; ".join(said)


FIELDS = ("old", "new", "pictures", "model", "settings", "reasons", "queries", "new_queries", "gone_queries")
"""Those of --json, besides the page."""


def _data(found: AnswerComparison) -> dict[str, Any]:
    values = (
        _state(found.old),
        _state(found.new),
        found.pictures,
        None if found.model is None else dict(zip(("before", "after"), found.model, strict=True)),
        found.settings,
        found.reasons,
        [_question(each) for each in found.questions],
        found.new_queries,
        found.gone_queries,
    )
    return dict(zip(FIELDS, values, strict=True))


def _state(state: LibraryState) -> dict[str, Any]:
    """A moment for --json, with the versions of pipelines as numbers."""
    versions = {name: each.number for name, each in state.versions.items()}
    return {"id": state.id, "started": state.started, "commits": state.commits, "versions": versions}


def _question(question: QueryDifference) -> dict[str, Any]:
    differences = [
        {
            "sources": each.tile.sources,
            "id": each.tile.id,
            "old_rank": each.old_rank,
            "new_rank": each.new_rank,
            "old_distance": each.old.distance if each.old else None,
            "new_distance": each.new.distance if each.new else None,
            "reasons": [{"reason": reason, "words": words} for reason, words in each.reasons],
        }
        for each in question.differences
    ]
    return {"old": question.two.old, "new": question.two.new, "differences": differences}
