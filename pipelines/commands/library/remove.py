"""The command that removes pictures and query entries."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated

import typer

from pipelines.client.server.connection import Connection
from pipelines.commands.kit import progress
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
from pipelines.commands.kit.terminal import ask, files, say, say_all, say_first, say_json, say_unreadable
from pipelines.commands.library.compact import price
from pipelines.errors import LookalikeError
from pipelines.library import compaction, ingest, queries
from pipelines.library.ingest import IngestResult
from stages.datum.contract import load
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
        "lookalike remove --purge private/letter.jpg",
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
    everything: Annotated[
        bool, typer.Option("--all", help="Remove all of them, and hide those in listed buckets.")
    ] = False,
    query: Annotated[
        bool, typer.Option("--query", help="Remove query entries and their sheets, not library pictures.")
    ] = False,
    purge: Annotated[
        bool, typer.Option("--purge", help="Delete the bytes too, also those of pictures removed earlier.")
    ] = False,
    squash: Annotated[
        bool, typer.Option("--squash", help="With --purge: squash the earlier commits that keep the bytes as well.")
    ] = False,
    yes: YesOption = False,
    verbose: VerboseOption = False,
    wait: WaitOption = True,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Remove pictures from the library, or query entries. Older commits keep them.

    The pictures of a list are shown first, and removed if you agree. `lookalike undo` and `restore` put pictures back.
    A picture in a block is hidden there, which computes nothing. --purge writes such blocks again without it, and
    computes the pictures that stay in them again: the price is shown first. Earlier commits keep the bytes; --squash
    squashes those, with what was computed from them, so that --at, undo and restore do not reach them any more.
    """
    if everything + bool(names) + bool(from_) != 1:
        raise typer.BadParameter("give one of these: names to remove, --from or --all")
    if "" in (names or ()):
        raise typer.BadParameter("a name is empty")
    if from_ and query:
        raise typer.BadParameter("a list names pictures: name query entries one by one", param_hint="'--from'")
    if purge and (query or everything):
        raise typer.BadParameter("name the pictures whose bytes are to go", param_hint="'--purge'")
    if squash and not (purge and wait):
        raise typer.BadParameter("it goes with --purge, and not with --no-wait", param_hint="'--squash'")
    if purge:
        _purge(address, listed(from_) if from_ else names or [], squash, yes, wait, as_json)
        return
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
        said = _said(written)
    else:
        written = ingest.remove_all(connection)
        said, commit = f"removed everything from images{_staying(written)}", written.commit
    conclude(connection, said, commit, wait)
    if not query:
        say("to take this back: lookalike undo")
    if as_json:
        say_json({"commit": commit, "removed": removed})


def _contents(connection: Connection) -> Mapping[str, str]:
    """See read_contents; a removal seldom needs it, and the start need not wait for Arrow."""
    found: Mapping[str, str] = load("pipelines.analysis.measurement.copy_groups").read_contents(connection)
    return found


def _remove_listed(address: str, file: str, yes: bool, wait: bool, as_json: bool) -> None:
    names = list(dict.fromkeys(listed(file)))
    connection = open_write_connection(address)
    found, missing = ingest.present(connection, names, partial(_contents, connection))
    if not names:
        say("the list is empty: nothing to remove")
    say_unreadable(missing)
    if found:
        say_first(found, _MOST_NAMED)
        if not yes:
            ask(f"remove {_pictures(found)} from the library?", "--yes removes them", "nothing was removed")
    written = ingest.forget(connection, found) if found else None
    if written is not None:
        conclude(connection, _said(written), written.commit, wait)
        say("to take this back: lookalike undo")
    if as_json:
        removed, commit = (written.names, written.commit) if written else ([], None)
        say_json({"commit": commit, "removed": removed, "missing": missing})
    if missing:
        others = "all others were" if written else "nothing was removed"
        raise LookalikeError(f"{counted(len(missing), 'name', 'names')} on the list could not be removed; {others}")


def _said(written: IngestResult) -> str:
    hidden = counted(written.hidden, "is hidden in its block, which keeps", "are hidden in their blocks, which keep")
    more = f": {hidden} the bytes (`remove --purge` deletes them)" if written.hidden else ""
    return f"removed {files(written.files)} from images{more}{_staying(written)}"


def _staying(written: IngestResult) -> str:
    """What a listed bucket still has of it."""
    stay = f". {counted(written.in_bucket, 'is', 'are')} still in a bucket, and the masks hide what it brings again"
    return stay if written.in_bucket else ""


def _purge(address: str, words: Sequence[str], squash: bool, yes: bool, wait: bool, as_json: bool) -> None:
    connection = open_write_connection(address)
    rewrite = connection.retry(compaction.purged, connection, words)
    say_first(rewrite.removed, _MOST_NAMED)
    say(price(connection, rewrite))
    if not yes:
        history = ", and the commits since they were put" if squash else ""
        ask(f"delete {_pictures(rewrite.removed)}{history}?", "--yes deletes them", "nothing was removed")
    with progress.counting("putting pictures", rewrite.kept) as report:
        commit = compaction.write(connection, rewrite, report, apart=squash)
    conclude(connection, f"deleted {_pictures(rewrite.removed)} from images", commit, wait)
    sets = connection.retry(compaction.holding, connection, rewrite.removed, commit)
    kept = compaction.squash(connection, sets) if squash else dict.fromkeys(sets, "")
    say_all(f"commit {each} stays: {reason}" for each, reason in kept.items() if reason)
    if kept:
        number = counted(len(kept), "earlier commit keeps", "earlier commits keep")
        say(f"{number} the bytes, or what was computed from them{'' if squash else ': --squash deletes that history'}")
    else:
        say("no commit holds the bytes any more: the server frees their disk by itself, within hours")
    if as_json:
        data = {"commit": commit, "removed": rewrite.removed, "computed": rewrite.kept}
        say_json({**data, "squashed": len(sets) - len(kept), "kept": [*kept]})


def _pictures(names: Sequence[str]) -> str:
    return "this picture" if len(names) == 1 else f"these {len(names):,} pictures"
