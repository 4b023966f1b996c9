"""The command that removes pictures and query entries."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from pipelines.commands.app import App
from pipelines.commands.connecting import connected_to_write
from pipelines.commands.options import AddressOption, JsonOption, WaitOption
from pipelines.commands.terminal import files, say, say_json, say_unreadable
from pipelines.commands.waiting import conclude
from pipelines.errors import LookalikeError
from pipelines.library import ingest, queries
from stages import namelists
from stages.wording import counted

app = App()


@app.command(
    examples=(
        "lookalike remove holiday/beach.jpg",
        "lookalike remove holiday 'trip/*.png'",
        "lookalike remove --from results/duplicates/remove.txt",
        "lookalike remove --query mine.jpg",
    ),
)
def remove(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME|FOLDER|GLOB",
            help="Names in the library, as result sheets show them; folders of such names; quoted globs: 'trip/*.jpg'.",
        ),
    ] = None,
    listed: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Remove the pictures that a file lists, exactly one name a line; - for stdin.",
        ),
    ] = "",
    everything: Annotated[bool, typer.Option("--all", help="Remove all of them.")] = False,
    query: Annotated[
        bool, typer.Option("--query", help="Remove query entries and their sheets, not library pictures.")
    ] = False,
    wait: WaitOption = True,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Remove pictures from the library, or query entries. Older commits keep them."""
    if everything + bool(names) + bool(listed) != 1:
        raise typer.BadParameter("name what to remove, or give --from or --all; only one of these")
    if "" in (names or ()):
        raise typer.BadParameter("a name is empty")
    if listed and query:
        raise typer.BadParameter("a list names pictures; name query entries one by one", param_hint="'--from'")
    if listed:
        _remove_listed(address, _names(listed), wait, as_json)
        return
    connection = connected_to_write(address)
    removed: list[str] | None = None
    if query:
        gone = queries.remove(connection, names)
        removed, commit = gone.entries, gone.commit
        said = f"removed {len(gone.entries):,} of the queries: {', '.join(gone.entries)}"
    elif names:
        written = ingest.remove(connection, names)
        removed, commit = written.names, written.commit
        said = f"removed {files(written.files)} from images"
    else:
        said, commit = "removed everything from images", ingest.remove_all(connection)
    conclude(connection, said, commit, wait)
    if as_json:
        say_json({"commit": commit, "removed": removed})


def _remove_listed(address: str, names: Sequence[str], wait: bool, as_json: bool) -> None:
    connection = connected_to_write(address)
    written, missing = ingest.remove_listed(connection, names) if names else (None, {})
    if not names:
        say("the list is empty: nothing to remove")
    say_unreadable(missing)
    if written is not None:
        conclude(connection, f"removed {files(written.files)} from images", written.commit, wait)
    if as_json:
        removed, commit = (written.names, written.commit) if written else ([], None)
        say_json({"commit": commit, "removed": removed, "missing": missing})
    if missing:
        others = "all others were" if written else "nothing was removed"
        raise LookalikeError(f"{counted(len(missing), 'name', 'names')} on the list could not be removed; {others}")


def _names(file: str) -> list[str]:
    """The names in a file, or in the standard input. Raises LookalikeError if it cannot be read as a list."""
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return list(namelists.parse(content.decode("utf-8", "surrogateescape")))
    except OSError as error:
        raise LookalikeError(f"cannot read {file}: {error.strerror or error}") from error
    except ValueError as error:
        raise LookalikeError(f"{file} is not a list of names: {error}") from error
