"""The command that finds copies and near copies."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from pipelines.analysis.measurement import copy_groups
from pipelines.analysis.measurement.copy_groups import CopyGroups
from pipelines.commands.kit import optional_pipelines
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_write_connection
from pipelines.commands.kit.options import AddressOption, JsonOption, OnceOption, WaitOption, YesOption, output_option
from pipelines.commands.kit.terminal import console, display_path, plain_table, say, say_json
from stages.datum.text_format import counted, size, visible
from stages.report.copy_pages import EXACT, LIST, NEAR, CopyKind

app = App()

FIELDS = ("directory", "removable", "frees", "groups", "near")
"""Those of --json."""


@app.command(
    examples=(
        "lookalike duplicates",
        "lookalike duplicates --once  # and no pipelines that follow",
        "lookalike duplicates --near  # then also changed copies, to look at",
        "lookalike duplicates --across train test",
    )
)
def duplicates(
    with_near: Annotated[
        bool,
        typer.Option(
            "--near", help="Also show pictures that look like changed copies: scaled, compressed, turned, mirrored."
        ),
    ] = False,
    across: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="FOLDER FOLDER",
            help="Only pictures that are in both folders: the first keeps them, the second's are listed.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="The most groups to list, the largest ones.")] = 20,
    output: Annotated[Path, output_option("The directory for the pages and the list.")] = Path("results/duplicates"),
    off: Annotated[bool, typer.Option("--off", help="Delete the pipelines that find copies.")] = False,
    once: OnceOption = False,
    yes: YesOption = False,
    wait: WaitOption = True,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Find exact copies in the library: which file to keep, and a list of those that can go.

    The first call creates the pipelines for that, which then follow every change: it says what each later `lookalike
    add` will cost, and asks. Nothing is removed.
    """
    folders = copy_groups.folders(across)
    connection = open_write_connection(address)
    if off:
        optional_pipelines.off(connection, copy_groups.GROUP)
        return
    copy_groups.check(connection)
    with optional_pipelines.deployed(connection, copy_groups.GROUP, wait, once, yes) as ready:
        found = copy_groups.export(connection, output, with_near, folders) if ready else None
    if as_json:
        say_json({name: found and getattr(found, name) for name in FIELDS})
    if as_json or found is None:
        return
    where = f"both {folders[0]} and {folders[1]}" if folders else "the library"
    _show_exact(found, where, limit)
    if found.near is not None:
        say("")
        _show_near(found, found.near, where, limit)


def _show_exact(found: CopyGroups, where: str, limit: int) -> None:
    if not found.groups:
        say(f"no exact copies in {where}")
        return
    in_groups = counted(len(found.groups), "group", "groups")
    copied = counted(found.removable, "exact copy", "exact copies")
    say(f"{copied} in {in_groups} in {where}: {size(found.frees)} to free")
    say(f"look at them: {display_path(found.directory / EXACT.first)}")
    say(f"remove them: lookalike remove --from {display_path(found.directory / LIST)}")
    say("")
    _show_groups(found.groups, limit, EXACT)


def _show_near(found: CopyGroups, groups: Sequence[Mapping[str, Any]], where: str, limit: int) -> None:
    if not groups:
        say(f"no near copies in {where}")
        return
    copied = counted(sum(map(copy_groups.changed, groups)), "near copy", "near copies")
    say(f"{copied} in {counted(len(groups), 'group', 'groups')} in {where}: look at each before you remove any")
    say(f"look at them: {display_path(found.directory / NEAR.first)}")
    say("")
    _show_groups(groups, limit, NEAR)


def _show_groups(groups: Sequence[Mapping[str, Any]], limit: int, kind: CopyKind) -> None:
    table = plain_table()
    for name in ("group", "files", "size of others"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("keep" if kind is EXACT else "probably the original", overflow="fold")
    table.add_column("because")
    for number, group in enumerate(groups[:limit], start=1):
        cells = str(number), f"{copy_groups.size(group):,}", size(group["frees"]), group["keep"], group["why"]
        table.add_row(*(escape(visible(cell)) for cell in cells))
    console.print(table)
    if len(groups) > limit:
        say(f"and {counted(len(groups) - limit, 'group', 'groups')} more: -n, or {kind.first}, shows them")
