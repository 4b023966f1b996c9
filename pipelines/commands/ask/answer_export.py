"""The answers to queries as tables, CSV and Parquet, in files or on the standard output."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from pipelines.commands.kit import terminal
from pipelines.errors import LookalikeError
from pipelines.library import result_sheets
from pipelines.library.result_sheets import ResultSheet
from stages.report import answer_table
from stages.report.answer_table import CSV, PARQUET, Row

_STDOUT = "-"


def _checked(target: str) -> str:
    if target == _STDOUT:
        terminal.only_data(True)
    elif target and not Path(target).absolute().parent.is_dir():
        raise typer.BadParameter(f"there is no directory {Path(target).absolute().parent}")
    return target


CsvOption = Annotated[
    str,
    typer.Option(
        "--csv",
        metavar="FILE",
        callback=_checked,
        help="Also write the answers as CSV, a row for each file with all that is known of it (the pipelines give its "
        "path alone); - for the standard output.",
    ),
]
ParquetOption = Annotated[
    str, typer.Option("--parquet", metavar="FILE", callback=_checked, help="The same rows as Parquet.")
]


def require_one_output(*targets: str, as_json: bool, wait: bool) -> None:
    """Raises BadParameter for answers that would mix on the standard output, or that nobody waits for."""
    if [*targets, _STDOUT if as_json else ""].count(_STDOUT) > 1:
        raise typer.BadParameter("only one of --json, --csv and --parquet can have the standard output")
    if any(targets) and not wait:
        raise typer.BadParameter("without waiting there are no answers to write", param_hint="'--no-wait'")


def of_sheets(sheets: Iterable[ResultSheet], k: int | None) -> list[Row]:
    """The rows of the answers on result sheets."""
    return [row for sheet in sheets for line in result_sheets.answers(sheet, k) for row in _of_line(line)]


def _of_line(line: Mapping[str, Any]) -> list[Row]:
    neighbours = [
        {"rank": rank, **each, "sources": [{"path": path} for path in each["sources"]]}
        for rank, each in enumerate(line["neighbors"], 1)
    ]
    return answer_table.rows({"neighbors": neighbours}, ", ".join(line["sources"]))


def write(found: Sequence[Row], csv: str, parquet: str) -> None:
    """Writes the rows to those of the two that name a target. Raises LookalikeError."""
    table = answer_table.to_arrow(found) if csv or parquet else None
    for target, kind in ((csv, CSV), (parquet, PARQUET)):
        data = answer_table.encoded(table, kind) if target else b""
        if target == _STDOUT:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        elif target:
            try:
                Path(target).write_bytes(data)
            except OSError as error:
                raise LookalikeError(f"cannot write {target}: {(error.strerror or str(error)).lower()}") from error
