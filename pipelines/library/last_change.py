"""The last change of pictures, labels, attributes or vectors, whoever made it, and the commit set that takes it back:
every file as it was before, in all repos of the change.

Nothing is rewritten: the change stays in the history, and what took it back is a change like any other, so that taking
this back makes the first one again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.client.commit_history import CommitHistory, CommitRecord, FilePair
from pipelines.client.commit_sets import first_id
from pipelines.client.commit_writer import MovedHeadError
from pipelines.client.deployment.first_files import ATTRIBUTES, FIRST_FILES, LABELS, VECTORS
from pipelines.client.repository import CopyFile, DeleteFile, FileEdit, write_set
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library.snapshots import REPO
from stages.record import masks

_REPOS = (REPO, masks.REPO, LABELS, ATTRIBUTES, VECTORS)


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
"""The changes of one commit set, at least one; of pictures first, and then of their masks, if there are any."""


def read(connection: Connection) -> LastChange:
    """The newest commit set that changed a file. Raises LookalikeError if there is none, or while one is open."""
    history = CommitHistory(connection)
    records = {repo: _records(history, repo) for repo in _REPOS}
    found = [each for repo in _REPOS if (each := _last(history, repo, records[repo])) is not None]
    if not found:
        raise LookalikeError("there is nothing to take back: no pictures have been added or removed yet")
    newest = max(found, key=lambda each: each.made.started).set
    known = {each.repo: each for each in found if each.set == newest}
    return tuple(
        known.get(repo) or _change(history, repo, records[repo], number)
        for repo in _REPOS
        for number, each in enumerate(records[repo])
        if first_id(each.id, each.description) == newest
    )


def _records(history: CommitHistory, repo: str) -> Sequence[CommitRecord]:
    """The commits of a repo, the newest first. Raises LookalikeError while one is open."""
    found = [*history.records(repo)]
    if found and found[0].open:
        raise LookalikeError(
            f"{repo} is being written to (commit {found[0].id}): wait until `lookalike commits {repo}` shows its end"
        )
    return found


def _last(history: CommitHistory, repo: str, records: Sequence[CommitRecord]) -> RepoChange | None:
    """The newest change of a repo; the file that it began with, which states nothing, is none."""
    for number in range(len(records)):
        change = _change(history, repo, records, number)
        if change.files and [each.path for each in change.files] != [FIRST_FILES.get(repo, ("", b""))[0]]:
            return change
    return None


def _change(history: CommitHistory, repo: str, records: Sequence[CommitRecord], number: int) -> RepoChange:
    """What one of the commits of a repo changed, perhaps nothing."""
    made = history.ended(records[number])
    before = records[number + 1].id if number + 1 < len(records) else ""
    return RepoChange(made, records[0].id, before, tuple(history.pairs(repo, made.id)))


def take_back(connection: Connection, change: LastChange, description: str = "") -> str:
    """Makes one commit set with every file as it was before a change, and returns its id; see CommitWriter for the
    description. Raises LookalikeError, and
    changes nothing, if others have changed the library since the change was read."""
    try:
        heads = {each.repo: each.head for each in change}
        return write_set(connection, {each.repo: each.edits() for each in change}, description=description, onto=heads)
    except MovedHeadError as error:
        raise LookalikeError(
            f"the library has changed since this was shown (commit {error.newest}), so nothing was taken back: "
            "`lookalike undo` shows the change that is the last one now"
        ) from error
