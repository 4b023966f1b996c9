"""The command that searches for look-alikes, and the ways to ask: a service, the pipelines, an earlier library."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from pipelines.analysis.changes import library_state
from pipelines.analysis.changes.commit_pictures import CommitPictures
from pipelines.analysis.time_travel import past_library, past_search
from pipelines.client.commit_sets import commit_at
from pipelines.client.server.connection import Connection
from pipelines.commands.ask import answer_export, query_words, service_query
from pipelines.commands.ask.answer_export import CsvOption, ParquetOption
from pipelines.commands.ask.past_query import STEPS
from pipelines.commands.kit import display, interrupts, progress
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_connection, open_write_connection
from pipelines.commands.kit.job_completion import UploadedNames, conclude
from pipelines.commands.kit.options import (
    AddressOption,
    JsonOption,
    NearestOption,
    SheetsOption,
    VerboseOption,
    WaitOption,
)
from pipelines.commands.kit.terminal import files, require_readable, say, say_all, say_json, say_unreadable
from pipelines.errors import LookalikeError
from pipelines.library import queries, result_sheets
from pipelines.library.content_cache import ContentCache, default_path
from pipelines.library.query_check import checked
from pipelines.library.result_sheets import ResultSheet
from pipelines.library.snapshots import REPO as LIBRARY
from stages.datum.contract import StageError, load
from stages.files.question import Question, QuestionError, describe, from_texts, validated
from stages.filters.entry_question import entry_json

app = App()


def _by_a_service(field: str) -> str:
    return f"{describe(field)} Needs a service."


@app.command(
    examples=(
        "lookalike query mine.jpg others/",
        'lookalike query "red bicycle" --without snow',
        "lookalike query mine.jpg -k 1 --json",
        "lookalike query mine.jpg --filter holiday/ --max-distance 0.9",
        "lookalike query mine.jpg --where \"camera LIKE 'Canon%'\"",
        "lookalike query front.jpg back.jpg --combine all --service",
        "lookalike query mine.jpg --at 2026-11-01",
        "lookalike query mine.jpg --csv found.csv",
    ),
)
def query(
    context: typer.Context,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH|WORDS",
            help="Pictures, directories of them, or words for what they show. Each is one entry. What is "
            "written like a path has to exist.",
            show_default=False,
        ),
    ] = None,
    text: Annotated[
        str, typer.Option(metavar="WORDS", help="The same as WORDS; with pictures it is one question, of a service.")
    ] = "",
    without: Annotated[str, typer.Option(metavar="WORDS", help=describe("without"))] = "",
    k: NearestOption = None,
    filter: Annotated[str, typer.Option(metavar="PATHS", help=describe("filter"))] = "",
    where: Annotated[str, typer.Option(metavar="SQL", help=describe("where"))] = "",
    metric: Annotated[str, typer.Option(metavar="METRIC", help=_by_a_service("metric"))] = "",
    box: Annotated[str, typer.Option(metavar="LEFT,TOP,RIGHT,BOTTOM", help=_by_a_service("box"))] = "",
    combine: Annotated[str, typer.Option(metavar="any|all", help=_by_a_service("combine"))] = "",
    max_distance: Annotated[str, typer.Option(metavar="NUMBER", help=describe("max_distance"))] = "",
    exact: Annotated[str, typer.Option(metavar="true|false", help=_by_a_service("exact"))] = "",
    output: SheetsOption = Path("results"),
    verbose: VerboseOption = False,
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
    csv: CsvOption = "",
    parquet: ParquetOption = "",
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Search the library for look-alikes of pictures, or by words, list the nearest, and write result sheets.

    Where `lookalike serve` runs for this library it answers at once, and the sheet follows; --service alone makes none.
    --no-wait and --pipeline ask the pipelines, which know --filter, --where, --max-distance and, with words, --without.
    A picture that cannot be read is refused, and not stored. The sheets and their files hold all neighbours that are
    kept, whatever -k is. With --at the sheet of mine.jpg is in results/mine.jpg@COMMIT.
    """
    answer_export.require_one_output(csv, parquet, as_json=as_json, wait=wait)
    options = {"filter": filter, "where": where, "metric": metric, "box": box, "combine": combine}
    options |= {"max_distance": max_distance, "exact": exact, "without": without}
    given = query_words.divided(arguments or [], text)
    question = _question(given.options | {name: value for name, value in options.items() if value})
    found = queries.find([*given.paths, *context.with_resource(query_words.laid_out(given.words))])
    if at or with_todays_code:
        if not at:
            raise typer.BadParameter("it goes with --at", param_hint="'--with-todays-code'")
        if not wait:
            raise typer.BadParameter("with --at there are no jobs to wait for", param_hint="'--no-wait'")
        query_words.check_answerable(found, question)
        interrupts.explain("interrupted: nothing was written")
        with checked(found) as wait_for_good:
            connection = open_connection(address)
            commit = past_library.answering_commit(connection, connection.retry(commit_at, connection, at))
            file = _question_file(question, connection, library_state.commit_of(connection, LIBRARY, commit), commit)
            found = wait_for_good()
        say(f"asking the library of commit {commit}; nothing is written to the server")
        answered = past_search.ask(connection, commit, found, output, STEPS, k, with_todays_code, file)
        _say_left_out(found)
        answer_export.write(answer_export.of_sheets(answered.sheets, k), csv, parquet)
        _answer(answered.asked, answered.sheets, k, as_json)
        return
    served = None
    if by_service is not False and (by_service or wait):
        served = service_query.ask(open_connection(address), found, k, question)
        if served is None and by_service:
            raise LookalikeError("no service answered: start one with `lookalike serve`, or ask without --service")
    if served is not None:
        found = served.asked
        _say_left_out(found)
        if not as_json:
            _show_served(served)
        answer_export.write(served.rows, csv, parquet)
        if by_service or not question.for_pipelines or (question.without and found.wordless):
            if as_json:
                say_json({**_served_data(served), "skipped": found.left_out, "unreadable": found.unreadable})
            require_readable(found.unreadable)
            return
    with ExitStack() as checks:
        good = checks.enter_context(checked(found)) if served is None else None
        connection = open_write_connection(address)
        query_words.check_answerable(found, question)
        query_words.check_tower(connection, found, [] if text else given.words)
        file = _question_file(question, connection)
        if good is not None:
            result_sheets.check(k, result_sheets.neighbours_kept(connection) if k else None)
            found = good()
            _say_left_out(found)
    with progress.counting("putting queries") as report:
        put = queries.put(connection, found, report, file)
    said = f"put {files(put.files)} into queries" if verbose else ""
    conclude(connection, said, put.commit, wait, UploadedNames("queries", frozenset(put.entries)))
    sheets = result_sheets.export(connection, output, put.entries) if wait else []
    if served is None:
        answer_export.write(answer_export.of_sheets(sheets, k), csv, parquet)
    _answer(put, sheets, k, as_json, served)


def _question(options: Mapping[str, str]) -> Question:
    try:
        return from_texts(Question, options)
    except QuestionError as error:
        raise LookalikeError(f"{error}; see `lookalike query -h`") from error


def _question_file(question: Question, connection: Connection, commit: str = "", index: str = "") -> bytes:
    """The question.json that is put with pictures, b"" for a question without options. commit, index: of the library
    and its index, by default the newest. Raises LookalikeError for options that need a service."""
    try:
        if question.where:
            load("pipelines.library.attributes.attribute_columns").check_where(connection, question.where, index)
        if question.filter:
            known = CommitPictures(connection, ContentCache(default_path()))
            meant = connection.retry(known.meant, question.filter, commit)
            question = validated(Question, {**question.given, "filter": meant})
        return entry_json(question) if question.given else b""
    except StageError as error:
        raise LookalikeError(str(error)) from error


def _show_served(answered: service_query.ServiceAnswers) -> None:
    """Prints what a service answered."""
    display.show_lines(answered.answers)
    commit = answered.commits["index"][:12]
    say(f"answered by {answered.service.words} in {answered.seconds:.1f} s, from commit {commit}")


def _served_data(answered: service_query.ServiceAnswers) -> dict[str, object]:
    lines = [line for _, line in answered.answers]
    return {"service": answered.service.url, "commits": answered.commits, "queries": lines}


def _say_left_out(found: queries.QueryEntries) -> None:
    say_all(f"skipped {each}" for each in found.left_out)
    say_unreadable(found.unreadable)


def _answer(
    asked: queries.QueryUpload,
    sheets: Sequence[ResultSheet],
    k: int | None,
    as_json: bool,
    served: service_query.ServiceAnswers | None = None,
) -> None:
    """Prints the answers, and of those that a service has given the sheets only; raises LookalikeError if files could
    not be read."""
    if as_json:
        told = {"commit": asked.commit, "put": asked.files, "skipped": asked.left_out, "unreadable": asked.unreadable}
        told |= _served_data(served) if served is not None else {}
        say_json({**told, "sheets": [display.sheet_data(each, k if served is None else None) for each in sheets]})
    elif served is not None:
        display.show_sheets(sheets)
    else:
        display.show_answers(sheets, k)
    require_readable(asked.unreadable)
