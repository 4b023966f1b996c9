"""The commands that put pictures and queries, and show results."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from pipelines.client.server.local_server import default_root
from pipelines.commands.ask import past_query, service_query
from pipelines.commands.kit import display, progress
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_connection, open_write_connection
from pipelines.commands.kit.job_completion import UploadedNames, conclude, conclude_all
from pipelines.commands.kit.options import AddressOption, JsonOption, NearestOption, SheetsOption, WaitOption, path
from pipelines.commands.kit.terminal import display_path, files, say, say_all, say_json, say_unreadable
from pipelines.errors import LookalikeError
from pipelines.library import ingest, picture_sources, queries, result_sheets
from pipelines.library.datasets import stl10, stl10_upload
from pipelines.library.datasets.stl10 import names_stl10
from pipelines.library.result_sheets import ResultSheet

app = App()


@app.command(
    examples=(
        "lookalike add holiday/ cat.jpg",
        "lookalike add stl10 --split 0.8",
    ),
)
def add(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Pictures, directories, archives or STL-10 files, or the word stl10, the data set itself.",
        ),
    ],
    data_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="With stl10: the directory of its files [default: stl10 in the local server's state]."
        ),
    ] = None,
    split: Annotated[
        float | None, typer.Option(help="With stl10: the share of its pictures for the library [default: 0.9].")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="With stl10: the seed that chooses these pictures [default: 0].")
    ] = None,
    wait: WaitOption = True,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Put pictures into the library, replacing any of the same name.

    Files that cannot be read are named and left out, and the exit code is then 1. The word stl10 alone is the data set
    STL-10, which is downloaded if missing. One part of its pictures becomes library pictures, the rest one query
    entry. A file or directory called stl10 is ./stl10.
    """
    if names_stl10(paths, data_dir, (split, seed)):
        if as_json:
            raise typer.BadParameter("it is for pictures, not for the data set stl10", param_hint="'--json'")
        _add_stl10(data_dir or default_root() / "stl10", 0.9 if split is None else split, seed or 0, wait, address)
        return
    named = list(map(path, paths))
    connection = open_write_connection(address)
    found = picture_sources.find(named)
    say_all(f"skipped {each}" for each in found.left_out)
    with progress.counting("putting pictures", len(found.sources)) as report:
        written = ingest.add(connection, found.sources, report)
    unreadable = {**found.unreadable, **written.unreadable}
    say_unreadable(unreadable)
    put = UploadedNames("images", frozenset(written.names))
    rejected = conclude(connection, f"put {files(written.files)} into images", written.commit, wait, put)
    if as_json:
        told = {"commit": written.commit, "put": written.files, "skipped": found.left_out, "unreadable": unreadable}
        say_json({**told, "rejected": rejected})
    _end(unreadable)


def _add_stl10(directory: Path, share: float, seed: int, wait: bool, address: str) -> None:
    connection = open_write_connection(address)
    different = stl10_upload.differences(connection)
    say_all(different)
    if different:
        say(
            "the specifications stay as they are; for the original experiment deploy them with --overlay "
            f"{stl10_upload.OVERLAY} in a library of its own, as `make experiment` does"
        )
    place = stl10.find(directory)
    if place is None:
        say(f"STL-10 is not in {display_path(directory)}: downloading {stl10.ARCHIVE.url}")
        with progress.transferring("downloading", stl10.ARCHIVE.size) as report:
            place = stl10.fetch(directory, report)
    parts = stl10.split(place, share, seed)
    labels = stl10.labels(place)
    with progress.counting("putting pictures", len(parts.library) + len(parts.queries)) as report:
        done = stl10_upload.add(connection, parts, labels, report)
    conclude_all(connection, done, wait)


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
    _end(answered.unreadable)


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
    _end(asked.unreadable)


def _end(unreadable: Mapping[str, str]) -> None:
    if unreadable:
        raise LookalikeError(f"{files(len(unreadable))} could not be read: all others were put")
