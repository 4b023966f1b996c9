"""The command that asks for the look-alikes of pictures, and shows the answers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from pipelines.commands.ask import past_query, service_query
from pipelines.commands.kit import display, progress
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_connection, open_write_connection
from pipelines.commands.kit.job_completion import UploadedNames, conclude
from pipelines.commands.kit.options import AddressOption, JsonOption, NearestOption, SheetsOption, WaitOption, path
from pipelines.commands.kit.terminal import files, require_readable, say, say_all, say_json, say_unreadable
from pipelines.errors import LookalikeError
from pipelines.library import queries, result_sheets
from pipelines.library.result_sheets import ResultSheet

app = App()


@app.command(
    examples=(
        "lookalike query mine.jpg others/",
        "lookalike query mine.jpg -k 1 --json",
        "lookalike query mine.jpg --at 2026-11-01",
    ),
)
def query(
    context: typer.Context,
    paths: Annotated[
        list[Path],
        typer.Argument(parser=path, metavar="PATH", help="Pictures, or directories of them. Each is one entry."),
    ],
    k: NearestOption = None,
    output: SheetsOption = Path("results"),
    wait: WaitOption = True,
    at: Annotated[
        str,
        typer.Option(
            metavar="COMMIT|DATE",
            help="A commit id (see `lookalike commits`), an ancestor such as master^, or a date: search library and "
            "model as they were. The stages run on this machine, and nothing is written to the server.",
        ),
    ] = "",
    with_todays_code: Annotated[
        bool,
        typer.Option(
            "--with-todays-code", help="With --at: also where stages have changed since, which can take long."
        ),
    ] = False,
    by_service: Annotated[
        bool | None,
        typer.Option(
            "--service/--pipeline",
            help="Ask the service that runs for this library, or the pipelines [default: the service if one runs].",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Search the library for look-alikes of pictures, list the nearest, and write result sheets.

    Where `lookalike serve` runs for this library it answers at once, with no entry in `queries` and no sheet; --output,
    --no-wait and --pipeline ask the pipelines. The sheets and their files hold all neighbours that are kept, whatever
    -k is. With --at the sheet of mine.jpg is in results/mine.jpg@COMMIT.
    """
    if at or with_todays_code:
        if not at:
            raise typer.BadParameter("it goes with --at", param_hint="'--with-todays-code'")
        if not wait:
            raise typer.BadParameter("with --at there are no jobs to wait for", param_hint="'--no-wait'")
        connection = open_connection(address)
        answered = past_query.ask(connection, at, paths, output, k, with_todays_code)
        say_all(f"skipped {each}" for each in answered.asked.left_out)
        say_unreadable(answered.asked.unreadable)
        _answer(answered.asked, answered.sheets, k, as_json)
        return
    if by_service is not False and (by_service or (wait and _is_default(context, "output"))):
        served = service_query.ask(open_connection(address), paths, k)
        if served is not None:
            _answer_of_service(served, as_json)
            return
        if by_service:
            raise LookalikeError("no service answered: start one with `lookalike serve`, or ask without --service")
    connection = open_write_connection(address)
    result_sheets.check(k, result_sheets.neighbours_kept(connection) if k else None)
    with progress.counting("putting queries") as report:
        asked = queries.put(connection, paths, report)
    say_all(f"skipped {each}" for each in asked.left_out)
    say_unreadable(asked.unreadable)
    put = UploadedNames("queries", frozenset(asked.entries))
    conclude(connection, f"put {files(asked.files)} into queries", asked.commit, wait, put)
    sheets = result_sheets.export(connection, output, asked.entries) if wait else []
    _answer(asked, sheets, k, as_json)


def _answer_of_service(answered: service_query.ServiceAnswers, as_json: bool) -> None:
    """Prints what the service answered; raises LookalikeError if files could not be read."""
    say_all(f"skipped {each}" for each in answered.left_out)
    say_unreadable(answered.unreadable)
    if as_json:
        told = {"service": answered.service.url, "commits": answered.commits}
        unread = {"skipped": answered.left_out, "unreadable": answered.unreadable}
        say_json({**told, **unread, "queries": [line for _, line in answered.answers]})
    else:
        display.show_lines(answered.answers)
        say(
            f"answered by {answered.service.words} in {answered.seconds:.1f} s, from commit "
            f"{answered.commits['index'][:12]}; --pipeline puts the pictures into queries and writes result sheets"
        )
    require_readable(answered.unreadable)


def _is_default(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is None or source.name == "DEFAULT"


def _answer(asked: queries.QueryUpload, sheets: Sequence[ResultSheet], k: int | None, as_json: bool) -> None:
    """Prints the answers; raises LookalikeError if files could not be read."""
    if as_json:
        told = {"commit": asked.commit, "put": asked.files, "skipped": asked.left_out, "unreadable": asked.unreadable}
        say_json({**told, "sheets": [display.sheet_data(each, k) for each in sheets]})
    else:
        display.show_answers(sheets, k)
    require_readable(asked.unreadable)
