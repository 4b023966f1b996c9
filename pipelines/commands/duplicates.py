"""The command that finds copies and near copies."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from pipelines.commands import optional
from pipelines.commands.app import App
from pipelines.commands.connecting import connected_to_write
from pipelines.commands.options import AddressOption, JsonOption, WaitOption
from pipelines.commands.terminal import console, near, say, say_json
from pipelines.explaining.measuring import copies
from pipelines.explaining.measuring.copies import Copies
from stages.wording import counted, size, visible

app = App()


@app.command(
    examples=(
        "lookalike duplicates",
        "lookalike duplicates --distance 0  # exact copies only",
        "lookalike duplicates --across train test",
    ),
)
def duplicates(
    distance: Annotated[
        float | None,
        typer.Option(
            "--distance",
            "-d",
            min=0.0,
            help="The largest distance of near copies; 0 for exact ones [default: THRESHOLD].",
        ),
    ] = None,
    across: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="FOLDER FOLDER",
            help="Only pictures that are in both; those in the first are kept, those in the second listed.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="The most groups to list, the largest ones.")] = 20,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="The directory for the pages and the list.")
    ] = Path("results/duplicates"),
    off: Annotated[bool, typer.Option("--off", help="Delete the pipelines that find copies.")] = False,
    wait: WaitOption = True,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Find equal and near pictures in the library: which to keep, and a list of those to remove.

    The first call creates the pipelines for that, which then follow every change. Nothing is removed.
    """
    folders = copies.folders(across)
    connection = connected_to_write(address)
    if off:
        optional.off(connection, copies.GROUP)
        return
    copies.check(connection, distance)
    if not optional.ready(connection, copies.GROUP, wait):
        if as_json:
            say_json(dict.fromkeys(("directory", "removable", "frees", "groups")))
        return
    found = copies.export(connection, output, distance, folders)
    if as_json:
        say_json(
            {
                "directory": found.directory,
                "removable": found.removable,
                "frees": found.frees,
                "groups": found.groups,
            }
        )
        return
    _show(found, folders, limit)


def _show(found: Copies, folders: tuple[str, str] | None, limit: int) -> None:
    where = f"both {folders[0]} and {folders[1]}" if folders else "the library"
    if not found.groups:
        say(f"no copies in {where}")
        return
    console.print(_table(found, limit))
    if len(found.groups) > limit:
        say(f"and {counted(len(found.groups) - limit, 'group', 'groups')} more: -n, or the page, shows them")
    files = sum(map(copies.size, found.groups))
    unneeded = counted(found.removable, "file", "files")
    say(
        f"{counted(len(found.groups), 'group', 'groups')} of {counted(files, 'file', 'files')} in {where}; removing "
        f"{unneeded} frees {size(found.frees)}"
    )
    say(f"look at them: {near(found.directory / copies.PAGE)}")
    say(f"remove them: lookalike remove --from {near(found.directory / copies.LIST)}")


def _table(found: Copies, limit: int) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("group", "files", "frees"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("copies")
    table.add_column("keep", overflow="fold")
    table.add_column("because")
    for number, group in enumerate(found.groups[:limit], start=1):
        cells = (
            str(number),
            f"{copies.size(group):,}",
            size(group["frees"]),
            group["kind"],
            group["keep"],
            group["why"],
        )
        table.add_row(*(escape(visible(cell)) for cell in cells))
    return table
