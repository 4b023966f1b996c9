"""The last change of `images`, whoever made it, and the commit that takes it back: every file as it was before.

Nothing is rewritten: the change stays in the history, and what took it back is a change like any other, so that taking
this back makes the first one again.
"""

from dataclasses import dataclass
from itertools import pairwise

from pipelines.client.commit_history import CommitHistory, CommitRecord, FilePair
from pipelines.client.commit_writer import MovedHeadError
from pipelines.client.repository import CopyFile, DeleteFile, FileEdit, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library.snapshots import REPO


@dataclass(frozen=True, slots=True)
class LastChange:
    """made: the commit of the change. head: the newest commit, the same unless later ones changed no file. before: the
    commit before the change, "" for none. files: those that differ."""

    made: CommitRecord
    head: str
    before: str
    files: tuple[FilePair, ...]


def read(connection: Connection) -> LastChange:
    """The newest commit that changed a file. Raises LookalikeError if there is none, or while one is open."""
    history = CommitHistory(connection)
    records = [*history.records(REPO)]
    if records and records[0].open:
        raise LookalikeError(
            f"{REPO} is being written to (commit {records[0].id}): wait until `lookalike commits {REPO}` shows its end"
        )
    for made, before in pairwise([*records, None]):
        if made is not None and (files := history.pairs(REPO, history.ended(made).id)):
            return LastChange(made, records[0].id, before.id if before is not None else "", tuple(files))
    raise LookalikeError("there is nothing to take back: no pictures have been added or removed yet")


def take_back(connection: Connection, change: LastChange) -> str:
    """Makes one commit with every file as it was before a change, and returns its id. Copies on the server. Raises
    LookalikeError, and changes nothing, if others have changed the library since the change was read."""
    edits: list[FileEdit] = [DeleteFile(each.path) for each in change.files if each.old is None]
    edits += [CopyFile(each.path, REPO, change.before, each.path) for each in change.files if each.old is not None]
    try:
        return Repository(connection, REPO).write(edits, onto=change.head)
    except MovedHeadError as error:
        raise LookalikeError(
            f"the library has changed since this was shown (commit {error.newest}), so nothing was taken back: "
            "`lookalike undo` shows the change that is the last one now"
        ) from error
