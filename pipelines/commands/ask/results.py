"""The command that fetches result sheets, with an overview of them and, on request, links to the pictures' files."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from pipelines.client.commit_sets import commit_at
from pipelines.client.server.connection import Connection
from pipelines.commands.kit import display, progress
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_connection
from pipelines.commands.kit.options import AddressOption, JsonOption, NearestOption, SheetsOption
from pipelines.commands.kit.terminal import display_path, say, say_first, say_json
from pipelines.library import originals, result_sheets, sheet_overview
from pipelines.library.result_sheets import ResultSheet
from stages.datum.text_format import counted

app = App()

_SHOWN = 5
"""Originals that are not there and are named."""


@app.command(
    "results",
    examples=(
        "lookalike results",
        "lookalike results mine.jpg -k 1",
        "lookalike results --originals",
        "lookalike results mine.jpg --at 4f1d2c0a9b8e47d6a5f3c2b1e0d9f8a7",
        "lookalike results mine.jpg --at 2026-11-01",
    ),
)
def show_results(
    entries: Annotated[
        list[str] | None, typer.Argument(metavar="ENTRY", help="Query entries by name [default: all].")
    ] = None,
    k: NearestOption = None,
    output: SheetsOption = Path("results"),
    at: Annotated[
        str,
        typer.Option(
            metavar="COMMIT|DATE",
            help="The sheets as of a commit id (see `lookalike commits`), an ancestor such as master^, or a date.",
        ),
    ] = "",
    with_originals: Annotated[
        bool,
        typer.Option("--originals", help="Fetch the files of the neighbours as well, and link the sheets to them."),
    ] = False,
    pictures_in: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Link the sheets to the files below DIR that have the names of neighbours."),
    ] = None,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Write result sheets, as they are now or were at an older commit, to a directory. With -k, list the nearest.

    index.html in the directory shows all entries.
    """
    connection = open_connection(address)
    commit = connection.retry(commit_at, connection, at) if at else ""
    sheets = result_sheets.export(connection, output, entries or (), commit)
    overview = sheet_overview.write(output, sheets) if sheets else None
    if with_originals or pictures_in is not None:
        _link(connection, sheets, output, commit, fetched=with_originals, pictures_in=pictures_in)
    if as_json:
        say_json([display.sheet_data(each, k) for each in sheets])
        return
    if not sheets:
        say("no result sheets yet: add pictures with `lookalike add`, then search with `lookalike query`")
    if k is not None:
        display.show_answers(sheets, k)
        return
    display.show_sheets(sheets)
    if overview is not None:
        say(f"all entries: {display_path(overview)}")


def _link(
    connection: Connection,
    sheets: Sequence[ResultSheet],
    to: Path,
    commit: str,
    fetched: bool,
    pictures_in: Path | None,
) -> None:
    """Links sheets of a commit, by default the newest ones, to the files of the neighbours."""
    wanted = originals.names(sheets)
    files = originals.here(pictures_in, wanted) if pictures_in is not None else {}
    missing = [name for name in wanted if name not in files]
    absent: dict[str, str] = {}
    if fetched and missing:
        at = connection.retry(result_sheets.library_of, connection, commit)
        with progress.counting("fetching originals", len(missing)) as report, TemporaryDirectory() as scratch:
            place = to / originals.DIRECTORY
            files |= originals.fetch(connection, at, missing, place, Path(scratch), report, absent)
        say_first([f"left out {reason}" for reason in absent.values()], _SHOWN)
    originals.link(sheets, files)
    say(f"linked {counted(len(files), 'picture', 'pictures')} of {len(wanted):,}")
