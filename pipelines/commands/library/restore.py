"""The command `restore`: pictures and queries put back as they were."""

from collections.abc import Callable, Iterable
from typing import Annotated

import typer

from pipelines.analysis.changes import library_state
from pipelines.analysis.changes.commit_pictures import PREPROCESS, CommitPictures
from pipelines.client import commit_sets
from pipelines.client.commit_history import CommitHistory
from pipelines.client.server.connection import Connection
from pipelines.commands.kit import progress
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_write_connection
from pipelines.commands.kit.job_completion import conclude
from pipelines.commands.kit.options import AddressOption, JsonOption, ListOption, VerboseOption, WaitOption, listed
from pipelines.commands.kit.terminal import say, say_json
from pipelines.errors import LookalikeError
from pipelines.library import queries, restoration, snapshots
from pipelines.library.content_cache import ContentCache, default_path
from pipelines.library.restoration import RestoreResult
from pipelines.library.selection import NothingFoundError

app = App()

_NAMED = 5


@app.command(
    examples=(
        "lookalike restore holiday/beach.jpg --at 97819ef4692b^",
        "lookalike restore holiday 'trip/*.png' --at 2026-11-01",
        "lookalike restore --from remove.txt --at images@97819ef4692b^",
        "lookalike restore --query mine.jpg --at 2026-11-01",
    )
)
def restore(
    at: Annotated[
        str,
        typer.Option(metavar="COMMIT|DATE", help="A commit id (or prefix), an ancestor such as master^, or a date."),
    ],
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME|FOLDER|GLOB",
            help="Names that pictures had, as result sheets show them, folders of such names, or quoted globs.",
        ),
    ] = None,
    from_: ListOption = "",
    query: Annotated[bool, typer.Option("--query", help="Restore query entries, not library pictures.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace pictures of these names that have other content now.")
    ] = False,
    verbose: VerboseOption = False,
    wait: WaitOption = True,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Put removed pictures, or older versions of pictures, back into the library as they were at a commit or date.

    Unchanged pictures are left alone. A picture with other content is kept unless --replace is given, and older
    commits keep it in any case. This is one change, and brings the earlier answers back.
    """
    if bool(names) == bool(from_):
        raise typer.BadParameter("give one of these: names to restore, or --from")
    names = listed(from_) if from_ else names or []
    if "" in names:
        raise typer.BadParameter("a name is empty")
    if not names:
        say("the list is empty: nothing to restore")
        return
    connection = open_write_connection(address)
    commit_set = connection.retry(commit_sets.commit_at, connection, at)
    repo = queries.REPO if query else snapshots.REPO
    commit = connection.retry(library_state.commit_of, connection, repo, commit_set)
    if not commit:
        raise LookalikeError(f"{repo} was empty at {at}: `lookalike history {repo}` shows its commits")
    try:
        if query:
            done = restoration.entries(connection, names, commit, at, replace)
        else:
            known = connection.retry(_names, connection, commit)
            with progress.counting("comparing pictures") as report:
                done = restoration.pictures(connection, names, commit, at, replace, known, report)
    except NothingFoundError as error:
        hint = f"`lookalike history {names[0]}` shows when it was there"
        if commit_sets.is_to_come(at):
            hint += f"; {at} means now, and `lookalike undo` takes the last change back"
        raise LookalikeError(f"{error}: {hint}") from error
    _conclude(connection, done, repo, wait)
    if as_json:
        data = {"restored": done.missing, "replaced": done.replaced, "unchanged": done.unchanged}
        say_json({"commit": done.commit or None, **data})


def _names(connection: Connection, commit: str) -> Callable[[], Iterable[str]] | None:
    """Gives the names of the pictures at a commit from what preprocess made of it; None if it did not."""
    pipeline = PREPROCESS[snapshots.REPO]
    if not any(record.id == commit and record.good for record in CommitHistory(connection).records(pipeline)):
        return None
    return lambda: CommitPictures(connection, ContentCache(default_path())).at(snapshots.REPO, commit)


def _conclude(connection: Connection, done: RestoreResult, repo: str, wait: bool) -> None:
    said = [
        f"{words} {_listed(found)}"
        for words, found in (("restored", done.missing), ("replaced", done.replaced))
        if found
    ]
    same = f"{len(done.unchanged):,} there already, and equal" if done.unchanged else ""
    if done.commit:
        conclude(connection, f"{'; '.join(filter(None, (*said, same)))} in {repo}", done.commit, wait)
    else:
        say(f"nothing to restore: {same}")


def _listed(names: list[str]) -> str:
    return f"{len(names):,}: {', '.join(names)}" if len(names) <= _NAMED else f"{len(names):,}"
