"""The command `undo`: the last change of the library taken back."""

from collections.abc import Iterator
from datetime import datetime

from pipelines.analysis.changes.commit_pictures import PictureChanges
from pipelines.analysis.changes.library_history import LibraryHistory
from pipelines.client.server.connection import Connection
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_write_connection
from pipelines.commands.kit.job_completion import conclude
from pipelines.commands.kit.options import AddressOption, JsonOption, VerboseOption, WaitOption, YesOption
from pipelines.commands.kit.terminal import ask, files, say, say_json
from pipelines.library import last_change
from pipelines.library.content_cache import ContentCache, default_path
from pipelines.library.last_change import LastChange
from pipelines.library.snapshots import REPO
from stages.datum.text_format import counted
from stages.record import masks

app = App()

_NAMED = 3


@app.command(examples=("lookalike undo", "lookalike undo --yes"))
def undo(
    yes: YesOption = False,
    wait: WaitOption = True,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Take back the last change of pictures, labels, attributes or vectors, whichever command or program made it.

    The change is shown first, and taken back if you agree: labels that were put with pictures go with them. This is one
    new change, and the history keeps both: a second undo takes back the first one. Queries and the model stay as they
    are. For an older change see `lookalike restore`.
    """
    connection = open_write_connection(address)
    change = connection.retry(last_change.read, connection)
    made = change[0].made
    pictures = connection.retry(_pictures, connection, made.id) if made.repo == REPO else None
    what = f"{', '.join(_parts(change, pictures))} on {_time(made.started)}"
    by = ": ".join(filter(None, (made.author, made.description)))
    say(f"takes back: {what}{f' ({by})' if by else ''}")
    if not yes:
        ask("take this back?", "--yes takes it back", "nothing was taken back")
    commit = last_change.take_back(connection, change)
    conclude(connection, f"took back {what}", commit, wait)
    say("to make the change again: lookalike undo")
    if as_json:
        say_json({"commit": commit, "undone": made.id, "pictures": pictures})


def _pictures(connection: Connection, commit: str) -> PictureChanges | None:
    """What a change did to pictures; None where preprocess has not computed it."""
    changes = LibraryHistory(connection, ContentCache(default_path())).newest_first([REPO])
    return next(each.pictures for each in changes if each.id == commit)


def _parts(change: LastChange, pictures: PictureChanges | None) -> Iterator[str]:
    """The change in words, repo by repo."""
    if pictures:
        yield from _of_pictures(pictures)
    told = (REPO, masks.REPO) if pictures else ()
    for each in change:
        if each.files and each.repo not in told:
            yield f"a change of {files(len(each.files))}{'' if each.repo == REPO else f' of {each.repo}'}"


def _of_pictures(pictures: PictureChanges) -> Iterator[str]:
    for names, word in ((pictures.added, "added"), (pictures.changed, "replaced"), (pictures.removed, "removed")):
        if names:
            named = f" ({', '.join(names)})" if len(names) <= _NAMED else ""
            yield f"{counted(len(names), 'picture', 'pictures')} {word}{named}"
    if pictures.rejected:
        yield f"{files(len(pictures.rejected))} that could not be read"


def _time(moment: datetime) -> str:
    """A time in words, in this machine's zone: "27 November 14:02", with the year unless it is this one."""
    local = moment.astimezone()
    year = "" if local.year == datetime.now(local.tzinfo).year else f" {local.year}"
    return f"{local.day} {local:%B}{year} {local:%H:%M}"
