"""The commands of people's attributes: tables of pictures put, listed and removed."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from pipelines.analysis.measurement.optional_deployment import ANNOTATIONS
from pipelines.client.deployment.first_files import ATTRIBUTES
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.server.connection import Connection
from pipelines.commands.kit import optional_pipelines
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_connection, open_write_connection
from pipelines.commands.kit.job_completion import conclude
from pipelines.commands.kit.options import AddressOption, JsonOption, WaitOption, YesOption, path
from pipelines.commands.kit.terminal import console, files, plain_table, say, say_all, say_json
from pipelines.errors import LookalikeError
from pipelines.library.attributes import attribute_plan, attribute_repo, sidecar_files, table_files
from pipelines.library.attributes.attribute_plan import NONE
from pipelines.library.attributes.attribute_repo import AttributeRepo
from pipelines.library.attributes.picture_keys import PictureKeys
from pipelines.library.attributes.table_files import StatedTable, attribute_name
from pipelines.library.picture_sources import folder_name
from stages.datum.text_format import counted, first_of
from stages.record.attribute_schema import TYPES
from stages.record.label_files import LineProblem

app = App()
attributes_app = App(help="Give pictures attributes from tables of your own.", no_args_is_help=True)
app.add_typer(attributes_app, name="attributes")

_MOST_PROBLEMS = 20


@attributes_app.command(
    examples=(
        "lookalike attributes add photos.csv",
        "lookalike attributes add catalogue.parquet --key file",
        "lookalike attributes add list.csv --rename width=frame_width --type code=text",
        "lookalike attributes add --sidecars photos/",
    ),
)
def add(
    tables: Annotated[
        list[Path] | None,
        typer.Argument(parser=path, metavar="TABLE", help="Tables: CSV, JSON Lines or Parquet, with a row a picture."),
    ] = None,
    key: Annotated[str, typer.Option(metavar="COLUMN", help="The column with the names of the pictures.")] = "path",
    sidecars: Annotated[
        list[Path] | None,
        typer.Option(
            parser=path, metavar="DIR", help="Make a table of the .json, .txt and .xmp files beside pictures."
        ),
    ] = None,
    rename: Annotated[
        list[str] | None, typer.Option(metavar="OLD=NEW", help="Another name for a column (repeatable).")
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="COLUMN=TYPE",
            help=f"The type of a column ({', '.join(TYPES)}), or {NONE} to leave it out (repeatable).",
        ),
    ] = None,
    keep_unknown: Annotated[
        bool,
        typer.Option("--keep-unknown", help="Put rows of pictures that the library lacks, too: they count later."),
    ] = False,
    yes: YesOption = False,
    wait: WaitOption = True,
    address: AddressOption = "",
) -> None:
    """Give pictures attributes from tables, to search by them.

    A picture is named as in the library, or by the end of its path if no other ends so. A table replaces the one of its
    name. All lines are checked first, and nothing is put while one of them cannot be. The first call creates the
    pipeline for that: it says what each later `lookalike add` will cost, and asks."""
    renamed, wanted = _pairs(rename, "--rename"), _pairs(types, "--type")
    for name, type in wanted.items():
        if type not in (*TYPES, NONE):
            raise typer.BadParameter(f"--type {name}={type}: a type is {', '.join(TYPES)}, or {NONE}")
    stated = {table_name(each.stem): table_files.read_table(each, key, renamed) for each in tables or ()}
    if len(stated) < len(tables or ()):
        raise typer.BadParameter("two tables have one name, and one would replace the other: rename one of the files")
    connection = open_write_connection(address)
    if not (tables or sidecars or attribute_repo.read(connection).tables):
        raise typer.BadParameter("name a table, or a folder with --sidecars")
    pictures = PictureKeys(connection.retry(attribute_repo.picture_paths, connection))
    if (tables or sidecars) and not pictures.paths:
        raise LookalikeError("the library has no pictures that attributes could be of: add some with `lookalike add`")
    for directory in sidecars or ():
        stated[table_name(f"sidecars-{folder_name(directory)}")] = _sidecars(directory, pictures, renamed)
    put(connection, stated, pictures, wanted, keep_unknown, wait, yes)


def put(
    connection: Connection,
    stated: dict[str, StatedTable],
    pictures: PictureKeys,
    wanted: dict[str, str],
    keep_unknown: bool,
    wait: bool,
    yes: bool,
) -> None:
    """Puts tables, by name, in place of those of their names, and deploys the pipeline for them. wanted: types of
    attributes by name. keep_unknown: puts rows of pictures that the library lacks. Raises LookalikeError, having said
    every problem, if one of them cannot be put."""
    before = attribute_repo.read(connection)
    after = _planned(stated, pictures, before, wanted, keep_unknown)
    with optional_pipelines.deployed(connection, ANNOTATIONS, wait, yes=yes):
        commit = attribute_repo.write(connection, before, after)
        if commit:
            conclude(connection, f"put {counted(len(stated), 'table', 'tables')} into {ATTRIBUTES}", commit, wait)
        else:
            say("these tables are there already")


def _sidecars(directory: Path, pictures: PictureKeys, renamed: dict[str, str]) -> StatedTable:
    if not directory.is_dir():
        raise typer.BadParameter(f"--sidecars {directory}: it is not a directory")
    table, strangers = sidecar_files.read_sidecars(directory, pictures, renamed)
    if strangers:
        say(f"{files(len(strangers))} beside no picture of the library, left out: {first_of(strangers, 3)}")
    if not table.keys and not table.problems:
        raise LookalikeError(f"{directory} has no .json, .txt or .xmp file beside a picture of the library")
    return table


def _planned(
    stated: dict[str, StatedTable],
    pictures: PictureKeys,
    before: AttributeRepo,
    wanted: dict[str, str],
    keep_unknown: bool,
) -> dict[str, pa.Table]:
    """All tables as they will be. Raises LookalikeError, having said every problem, if one of them cannot be put."""
    after = {name: table for name, table in before.tables.items() if name not in stated}
    problems: list[LineProblem] = []
    said = []
    for name, each in stated.items():
        known = AttributeRepo("", after).types
        planned = attribute_plan.plan(each, pictures, after, known, wanted)
        problems += planned.problems
        after[name] = planned.table
        said.append(attribute_plan.words(planned, name, name in before.tables))
    hindering = [each for each in problems if not (each.unknown and keep_unknown)]
    for problem in hindering[:_MOST_PROBLEMS]:
        typer.echo(problem.said, err=True)
    if hindering:
        more = f" ({len(hindering) - _MOST_PROBLEMS:,} more are not shown)" if len(hindering) > _MOST_PROBLEMS else ""
        fix = "correct them"
        if all(each.unknown for each in hindering):
            fix = "add these pictures first, or put the rows all the same with --keep-unknown"
        raise LookalikeError(f"nothing was put, for {counted(len(hindering), 'problem', 'problems')}{more}: {fix}")
    say_all(said)
    if problems:
        say(f"{counted(len(problems), 'row', 'rows')} of pictures that the library lacks: they count when these come")
    return after


@attributes_app.command("list", examples=("lookalike attributes list", "lookalike attributes list --json"))
def list_(as_json: JsonOption = False, address: AddressOption = "") -> None:
    """List the tables with their attributes."""
    connection = open_connection(address)
    found = attribute_repo.read(connection)
    types = found.types
    deployed = ANNOTATIONS in connection.retry(ProjectJobs(connection).pipelines)
    if as_json:
        tables = {
            name: {"files": len(each), "attributes": each.schema.names[1:]} for name, each in found.tables.items()
        }
        say_json({"tables": tables, "attributes": types, "deployed": deployed})
        return
    table = plain_table("table", "files", "attributes")
    for name, each in sorted(found.tables.items()):
        columns = ", ".join(f"{column} ({types[column]})" for column in each.schema.names[1:])
        table.add_row(name, f"{len(each):,}", columns)
    if found.tables:
        console.print(table)
    else:
        say("there are no tables: lookalike attributes add TABLE")
    if found.tables and not deployed:
        say("searches do not see them, since the pipeline annotations is not deployed: lookalike attributes add")


@attributes_app.command(examples=("lookalike attributes remove photos",))
def remove(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME", help="Tables, as `lookalike attributes list` has them.")
    ],
    wait: WaitOption = True,
    address: AddressOption = "",
) -> None:
    """Remove tables. Pictures keep what other tables state of them."""
    connection = open_write_connection(address)
    before = attribute_repo.read(connection)
    for name in names:
        if name not in before.tables:
            there = first_of(sorted(before.tables), 8) or "there are none"
            raise LookalikeError(f"no table is called {name}: nothing was removed ({there})")
    after = {name: each for name, each in before.tables.items() if name not in names}
    commit = attribute_repo.write(connection, before, after)
    conclude(connection, f"removed {counted(len({*names}), 'table', 'tables')} from {ATTRIBUTES}", commit, wait)


@attributes_app.command(examples=("lookalike attributes off",))
def off(address: AddressOption = "") -> None:
    """Delete the pipeline that deals attributes to searches. The tables stay."""
    optional_pipelines.off(open_write_connection(address), ANNOTATIONS)
    say(f"the tables stay in the repo {ATTRIBUTES}")


def _pairs(given: Sequence[str] | None, option: str) -> dict[str, str]:
    """The names and values of an option, as attributes are called."""
    found = {}
    for each in given or ():
        name, separator, value = each.partition("=")
        if not (attribute_name(name) and separator and attribute_name(value)):
            raise typer.BadParameter(f"{option} {each}: write COLUMN=VALUE")
        found[attribute_name(name)] = attribute_name(value)
    return found


def table_name(text: str) -> str:
    """The name of a table for that of a file or folder."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.") or "table"
