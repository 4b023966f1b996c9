"""The last change of pictures, labels or people's attributes, whoever made it, and the commit set that takes it back:
every file as it was before, in all repos of the change.

Nothing is rewritten: the change stays in the history, and what took it back is a change like any other, so that taking
this back makes the first one again.
"""

from dataclasses import dataclass
from itertools import pairwise

from pipelines.client.commit_history import CommitHistory, CommitRecord, FilePair
from pipelines.client.commit_sets import first_id
from pipelines.client.commit_writer import MovedHeadError
from pipelines.client.deployment.first_files import ATTRIBUTES, FIRST_FILES, LABELS
from pipelines.client.repository import CopyFile, DeleteFile, FileEdit, write_set
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library.snapshots import REPO

_REPOS = (REPO, LABELS, ATTRIBUTES)


@dataclass(frozen=True, slots=True)
class RepoChange:
    """made: the commit of a change in one repo. head: the newest commit of the repo, the same unless later ones changed
    no file. before: the commit before the change, "" for none. files: those that differ."""

    made: CommitRecord
    head: str
    before: str
    files: tuple[FilePair, ...]

    @property
    def repo(self) -> str:
        return self.made.repo

    @property
    def set(self) -> str:
        """The commit set that it was made in."""
        return first_id(self.made.id, self.made.description)

    def edits(self) -> list[FileEdit]:
        """Those that bring every file back, as copies on the server."""
        there = [each.path for each in self.files if each.old is not None]
        gone: list[FileEdit] = [DeleteFile(each.path) for each in self.files if each.old is None]
        return [*gone, *(CopyFile(path, self.repo, self.before, path) for path in there)]


LastChange = tuple[RepoChange, ...]
"""The changes of one commit set, at least one; of pictures first."""


def read(connection: Connection) -> LastChange:
    """The newest commit set that changed a file. Raises LookalikeError if there is none, or while one is open."""
    history = CommitHistory(connection)
    found = [each for repo in _REPOS if (each := _last(history, repo)) is not None]
    if not found:
        raise LookalikeError("there is nothing to take back: no pictures have been added or removed yet")
    newest = max(found, key=lambda each: each.made.started)
    return tuple(each for each in found if each.set == newest.set)


def _last(history: CommitHistory, repo: str) -> RepoChange | None:
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
            return RepoChange(made, records[0].id, before.id if before is not None else "", tuple(files))
    return None


def take_back(connection: Connection, change: LastChange) -> str:
    """Makes one commit set with every file as it was before a change, and returns its id. Raises LookalikeError, and
    changes nothing, if others have changed the library since the change was read."""
    try:
        heads = {each.repo: each.head for each in change}
        return write_set(connection, {each.repo: each.edits() for each in change}, onto=heads)
    except MovedHeadError as error:
        raise LookalikeError(
            f"the library has changed since this was shown (commit {error.newest}), so nothing was taken back: "
            "`lookalike undo` shows the change that is the last one now"
        ) from error
