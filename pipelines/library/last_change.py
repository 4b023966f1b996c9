"""The last change of `images` or of `attributes`, whoever made it, and the commit that takes it back: every file as it
was before.

Nothing is rewritten: the change stays in the history, and what took it back is a change like any other, so that taking
this back makes the first one again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from pipelines.client.commit_history import CommitHistory, CommitRecord, FilePair
from pipelines.client.commit_writer import MovedHeadError
from pipelines.client.deployment.first_files import ATTRIBUTES, FIRST_FILES
from pipelines.client.repository import CopyFile, DeleteFile, FileEdit, write_set
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library.snapshots import REPO
from stages.record import masks


@dataclass(frozen=True, slots=True)
class LastChange:
    """made: the commit of the change. The others are by repo, with `masks` for a change of pictures that has a commit
    there. heads: the newest commits, of which no later one than `made` changed a file. before: the commits before the
    change, "" for none. by_repo: the files that differ."""

    made: CommitRecord
    heads: Mapping[str, str]
    before: Mapping[str, str]
    by_repo: Mapping[str, tuple[FilePair, ...]]

    @property
    def files(self) -> list[FilePair]:
        """All files that differ."""
        return [each for files in self.by_repo.values() for each in files]


def read(connection: Connection) -> LastChange:
    """The newest commit that changed a file. Raises LookalikeError if there is none, or while one is open."""
    history = CommitHistory(connection)
    found = [each for repo in (REPO, ATTRIBUTES) if (each := _last(history, repo)) is not None]
    if not found:
        raise LookalikeError("there is nothing to take back: no pictures have been added or removed yet")
    return max(found, key=lambda each: each.made.started)


def _last(history: CommitHistory, repo: str) -> LastChange | None:
    """The newest change of a repo; the file that it began with, which states nothing, is none."""
    records = {repo: [*history.records(repo)]}
    if repo == REPO:
        records[masks.REPO] = [*history.records(masks.REPO)]
    newest = records[repo][:1]
    if newest and newest[0].open:
        raise LookalikeError(
            f"{repo} is being written to (commit {newest[0].id}): wait until `lookalike commits {repo}` shows its end"
        )
    before = {each: _parents(of) for each, of in records.items()}
    for made in records[repo]:
        history.ended(made)
        files = {each: tuple(history.pairs(each, made.id)) for each in records if made.id in before[each]}
        first = [FIRST_FILES.get(repo, ("", b""))[0]]
        if any(files.values()) and [each.path for each in files[repo]] != first:
            heads = {each: records[each][0].id for each in files}
            return LastChange(made, heads, {each: before[each][made.id] for each in files}, files)
    return None


def _parents(records: Iterable[CommitRecord]) -> dict[str, str]:
    """The commit before each of these, "" for none."""
    return {made.id: old.id if old is not None else "" for made, old in pairwise([*records, None]) if made is not None}


def take_back(connection: Connection, change: LastChange) -> str:
    """Makes one commit with every file as it was before a change, and returns its id. Copies on the server. Raises
    LookalikeError, and changes nothing, if others have changed the library since the change was read."""
    edits: dict[str, list[FileEdit]] = {repo: [] for repo in change.by_repo}
    for repo, files in change.by_repo.items():
        edits[repo] += [DeleteFile(each.path) for each in files if each.old is None]
        edits[repo] += [CopyFile(each.path, repo, change.before[repo], each.path) for each in files if each.old]
    try:
        return write_set(connection, edits, onto=change.heads)
    except MovedHeadError as error:
        raise LookalikeError(
            f"the library has changed since this was shown (commit {error.newest}), so nothing was taken back: "
            "`lookalike undo` shows the change that is the last one now"
        ) from error
