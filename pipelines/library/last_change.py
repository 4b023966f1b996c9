"""The last change of `images` or of `attributes`, whoever made it, and the commit that takes it back: every file as it
was before.

Nothing is rewritten: the change stays in the history, and what took it back is a change like any other, so that taking
this back makes the first one again.
"""

from dataclasses import dataclass
from itertools import pairwise

from pipelines.client.commit_history import CommitHistory, CommitRecord, FilePair
from pipelines.client.commit_writer import MovedHeadError
from pipelines.client.deployment.first_files import ATTRIBUTES, FIRST_FILES
from pipelines.client.repository import CopyFile, DeleteFile, FileEdit, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library.snapshots import REPO


@dataclass(frozen=True, slots=True)
class LastChange:
    """made: the commit of the change. head: the newest commit of its repo, the same unless later ones changed no file.
    before: the commit before the change, "" for none. files: those that differ."""

    made: CommitRecord
    head: str
    before: str
    files: tuple[FilePair, ...]


def read(connection: Connection) -> LastChange:
    """The newest commit that changed a file. Raises LookalikeError if there is none, or while one is open."""
    history = CommitHistory(connection)
    found = [each for repo in (REPO, ATTRIBUTES) if (each := _last(history, repo)) is not None]
    if not found:
        raise LookalikeError("there is nothing to take back: no pictures have been added or removed yet")
    return max(found, key=lambda each: each.made.started)


def _last(history: CommitHistory, repo: str) -> LastChange | None:
    """The newest change of a repo; the file that it began with, which states nothing, is none."""
    records = [*history.records(repo)]
    if records and records[0].open:
        raise LookalikeError(
            f"{repo} is being written to (commit {records[0].id}): wait until `lookalike commits {repo}` shows its end"
        )
    for made, before in pairwise([*records, None]):
        if made is None or not (files := history.pairs(repo, history.ended(made).id)):
            continue
        if [each.path for each in files] != [FIRST_FILES.get(repo, ("", b""))[0]]:
            return LastChange(made, records[0].id, before.id if before is not None else "", tuple(files))
    return None


def take_back(connection: Connection, change: LastChange) -> str:
    """Makes one commit with every file as it was before a change, and returns its id. Copies on the server. Raises
    LookalikeError, and changes nothing, if others have changed the library since the change was read."""
    repo = change.made.repo
    edits: list[FileEdit] = [DeleteFile(each.path) for each in change.files if each.old is None]
    edits += [CopyFile(each.path, repo, change.before, each.path) for each in change.files if each.old is not None]
    try:
        return Repository(connection, repo).write(edits, onto=change.head)
    except MovedHeadError as error:
        raise LookalikeError(
            f"the library has changed since this was shown (commit {error.newest}), so nothing was taken back: "
            "`lookalike undo` shows the change that is the last one now"
        ) from error
