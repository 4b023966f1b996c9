"""The index as it is followed: its newest good commit, opened with the calibration that belongs to it.

Knows when to look, and no HTTP.
"""

from __future__ import annotations

import threading
from dataclasses import replace

from stages.datum.contract import StageError
from stages.datum.text_format import counted
from stages.serving.follow.commit_follower import NewestCommit
from stages.serving.follow.pachyderm_client import Absent, CommitFacts, PachydermClient
from stages.serving.follow.snapshot_loader import SnapshotLoader
from stages.serving.follow.snapshots import Snapshot, StepReporter

REPO = "index"

_LOOK_EVERY = 30.0
"""Seconds for which one call waits for a new commit. Between two calls the calibration is looked at."""


class IndexSource:
    """The index of one Pachyderm. See Followed."""

    repo = REPO
    name = "the index"
    empty = "the library is empty: add pictures with `lookalike add DIRECTORY`"
    other = "`lookalike history` lists those that it can be asked at"

    def __init__(self, server: PachydermClient, opening: SnapshotLoader) -> None:
        self._server = server
        self._opening = opening

    def newest(self) -> NewestCommit:
        """The newest good commit."""
        head: CommitFacts | None = None
        finished = ""
        try:
            for each in self._server.commits(REPO):
                head = head or each
                finished = finished or (each.id if each.finished else "")
                if each.good:
                    failed = f"the newest commit of index failed: {head.error}" if head.error else ""
                    return NewestCommit(each, failed, since=finished)
        except Absent as error:
            raise StageError(
                f"project {self._server.at.project} has no pipeline index: create the pipelines with `lookalike deploy`"
            ) from error
        if head is None:
            raise StageError("the pipeline index has no commit yet: add pictures with `lookalike add DIRECTORY`")
        if head.error:
            return NewestCommit(
                None, f"the index could not be computed: {head.error}; see `lookalike status`", "failed", finished
            )
        return NewestCommit(
            None, "the index is being computed for the first time: see `lookalike status`", since=finished
        )

    def open(self, commit: CommitFacts, before: Snapshot | None, say: StepReporter) -> Snapshot | None:
        """See SnapshotLoader.snapshot."""
        return self._opening.snapshot(commit, before, say)

    def commit(self, held: Snapshot) -> str:
        """The commit of the index."""
        return held.commits.index

    def described(self, held: Snapshot) -> str:
        """The number of pictures."""
        return counted(len(held.library), "picture", "pictures")

    def wait(self, since: str, held: Snapshot | None, closing: threading.Event) -> Snapshot | None:
        """Waits for the next finished commit; without one for a while, looks for another calibration."""
        if closing.is_set() or self._server.next_finished(REPO, since, _LOOK_EVERY) is not None or held is None:
            return held
        newest = self._opening.similarity(held.library)
        return held if newest == held.similarity else replace(held, similarity=newest)
