"""The command that removes pictures and query entries."""

from collections.abc import Sequence
from typing import Annotated

import typer

from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_write_connection
from pipelines.commands.kit.job_completion import conclude
from pipelines.commands.kit.options import (
    AddressOption,
    JsonOption,
    ListOption,
    VerboseOption,
    WaitOption,
    YesOption,
    listed,
)
from pipelines.commands.kit.terminal import ask, files, say, say_first, say_json, say_unreadable
from pipelines.errors import LookalikeError
from pipelines.library import ingest, queries
from stages.datum.text_format import counted

app = App()

_MOST_NAMED = 20
"""Pictures of a list that are named before it is asked whether they are to go."""


@app.command(
    examples=(
        "lookalike remove holiday/beach.jpg",
        "lookalike remove holiday 'trip/*.png'",
        "lookalike remove --from results/duplicates/remove.txt",
        "lookalike remove --query mine.jpg",
    )
)
def remove(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME|FOLDER|GLOB",
            help="Names in the library, as result sheets show them, folders of them, or quoted globs: 'trip/*.jpg'.",
        ),
    ] = None,
    from_: ListOption = "",
    everything: Annotated[bool, typer.Option("--all", help="Remove all of them.")] = False,
    query: Annotated[
        bool, typer.Option("--query", help="Remove query entries and their sheets, not library pictures.")
    ] = False,
    yes: YesOption = False,
    verbose: VerboseOption = False,
    wait: WaitOption = True,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Remove pictures from the library, or query entries. Older commits keep them.

    The pictures of a list are shown first, and removed if you agree. `lookalike undo` and `restore` put pictures back.
    """
    if everything + bool(names) + bool(from_) != 1:
        raise typer.BadParameter("give one of these: names to remove, --from or --all")
    if "" in (names or ()):
        raise typer.BadParameter("a name is empty")
    if from_ and query:
        raise typer.BadParameter("a list names pictures: name query entries one by one", param_hint="'--from'")
    if from_:
        _remove_listed(address, from_, yes, wait, as_json)
        return
    connection = open_write_connection(address)
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
    if not query:
        say("to take this back: lookalike undo")
    if as_json:
        say_json({"commit": commit, "removed": removed})


def _remove_listed(address: str, file: str, yes: bool, wait: bool, as_json: bool) -> None:
    names = list(dict.fromkeys(listed(file)))
    connection = open_write_connection(address)
    found, missing = ingest.present(connection, names)
    if not names:
        say("the list is empty: nothing to remove")
    say_unreadable(missing)
    if found:
        say_first(found, _MOST_NAMED)
        if not yes:
            ask(f"remove {_pictures(found)} from the library?", "--yes removes them", "nothing was removed")
    written = ingest.forget(connection, found) if found else None
    if written is not None:
        conclude(connection, f"removed {files(written.files)} from images", written.commit, wait)
        say("to take this back: lookalike undo")
    if as_json:
        removed, commit = (written.names, written.commit) if written else ([], None)
        say_json({"commit": commit, "removed": removed, "missing": missing})
    if missing:
        others = "all others were" if written else "nothing was removed"
        raise LookalikeError(f"{counted(len(missing), 'name', 'names')} on the list could not be removed; {others}")


def _pictures(names: Sequence[str]) -> str:
    return "this picture" if len(names) == 1 else f"these {len(names):,} pictures"
