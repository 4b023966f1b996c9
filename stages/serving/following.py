"""The state of the service: the snapshot of the newest good commit of the index, or of one fixed commit.

A thread waits for commits and makes the next snapshot beside the one in use. Readers take `state()`, which is replaced
as a whole. Knows no files and no HTTP.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from stages.contract import StageError
from stages.serving.opening import Opening
from stages.serving.pachyderm import Absent, CommitFacts, Pachyderm, PachydermError, Unreachable
from stages.serving.snapshots import Snapshot, State
from stages.wording import counted

REPO = "index"

_LOOK_EVERY = 30.0
"""Seconds for which one call waits for a new commit. Between two calls the calibration is looked at."""

_TRY_EVERY = 2.0
"""Seconds between two attempts to reach a server, or to find a repo, that is not there."""

_EMPTY = "the library is empty: add pictures with `lookalike add DIRECTORY`"


class Following:
    """Follows the index until `close`. at: the id of the only commit set to serve, "" for always the newest.

    report: takes a line for the log for each new state.
    """

    def __init__(
        self, server: Pachyderm, opening: Opening, at: str = "", report: Callable[[str], None] = print
    ) -> None:
        self._server = server
        self._opening = opening
        self._at = at
        self._report = report
        self._state = State("loading", f"asking Pachyderm at {server.at.url} for the index")
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="following", daemon=True)
        self._failed = ""  # the id of the commit that could not be opened

    def start(self) -> None:
        """Begins to follow, in a thread."""
        self._thread.start()

    def state(self) -> State:
        """The state at this moment."""
        return self._state

    def wait(self, until: Callable[[State], bool], seconds: float) -> State:
        """The first state for which `until` holds, or the one there is when the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: until(self._state), seconds)
            return self._state

    def close(self, within: float | None = None) -> None:
        """Ends; the last state stays. within: seconds after which a model that is still being loaded is left alone."""
        self._closing.set()
        self._server.close()
        if self._thread.ident is not None:
            self._thread.join(within)

    def _follow(self) -> None:
        while not self._closing.is_set():
            try:
                if self._at:
                    self._serve(self._fixed())
                    return
                self._step()
            except Unreachable as error:
                if not self._closing.is_set():
                    self._fail(f"{error}; trying again")
                    self._closing.wait(_TRY_EVERY)
            except (PachydermError, StageError) as error:
                self._fail(str(error))
                if self._at:
                    return
                self._closing.wait(_TRY_EVERY)
            except OSError as error:
                self._fail(f"{error.filename or 'this machine'}: {error.strerror or error}; trying again")
                self._closing.wait(_LOOK_EVERY)
            except Exception as error:  # a thread that ended would leave the state as it is for ever
                self._fail(f"a fault of lookalike's own, please report it ({type(error).__name__}: {error})")
                if self._at:
                    return
                self._closing.wait(_LOOK_EVERY)

    def _fixed(self) -> CommitFacts:
        self._say(f"waiting until commit {self._at[:12]} of index is finished")
        try:
            found = self._server.commit(REPO, self._at, wait=True)
        except Absent as error:
            raise StageError(
                f"index has no commit {self._at}: `lookalike history` lists those that it can be asked at"
            ) from error
        if found.error:
            raise StageError(f"commit {found.id} of index failed: {found.error}")
        return found

    def _step(self) -> None:
        """Serves the newest good commit, and waits for the next one."""
        head, good, since = self._newest()
        current = self._state.snapshot.commits.index if self._state.snapshot is not None else ""
        if good is None:
            self._become(State("failed" if head.error else "loading", _without(head)))
        elif good.id not in (current, self._failed):
            self._serve(good)
        elif good.id == current and head.error:
            self._become(replace(self._state, message=f"the newest commit of index failed: {head.error}"))
        if self._server.next_finished(REPO, since, _LOOK_EVERY) is None:
            self._calibrate()

    def _newest(self) -> tuple[CommitFacts, CommitFacts | None, str]:
        """The newest commit of the index, the newest good one, and the id of the newest finished one."""
        head: CommitFacts | None = None
        finished = ""
        try:
            for each in self._server.commits(REPO):
                head = head or each
                finished = finished or (each.id if each.finished else "")
                if each.good:
                    return head, each, finished
        except Absent as error:
            raise StageError(
                f"project {self._server.at.project} has no pipeline index: create the pipelines with `lookalike deploy`"
            ) from error
        if head is None:
            raise StageError("the pipeline index has no commit yet: add pictures with `lookalike add DIRECTORY`")
        return head, None, finished

    def _serve(self, commit: CommitFacts) -> None:
        began = time.monotonic()
        before = self._state.snapshot
        try:
            snapshot = self._opening.snapshot(commit, before, self._say)
        except Absent as error:
            raise StageError(f"a file of commit {commit.id} of index is gone: {error}") from error
        except (PachydermError, OSError):
            raise
        except Exception:
            self._failed = commit.id
            raise
        if snapshot is None:
            self._become(State("empty", _EMPTY))
            return
        pictures = counted(len(snapshot.library), "picture", "pictures")
        self._become(State("ready", "", snapshot))
        self._tell(f"ready in {time.monotonic() - began:.1f} s: {pictures} of commit {commit.id[:12]}")

    def _calibrate(self) -> None:
        held = self._state.snapshot
        if held is not None:
            newest = self._opening.similarity(held.library)
            if newest != held.similarity:
                self._become(replace(self._state, snapshot=replace(held, similarity=newest)))

    def _say(self, step: str) -> None:
        """The next step of loading; while a snapshot is in use only the log tells it."""
        if self._state.snapshot is None:
            self._become(State("loading", step))

    def _fail(self, reason: str) -> None:
        """A failure; a snapshot that is in use stays."""
        held: Snapshot | None = self._state.snapshot
        self._become(State("failed", reason) if held is None else State("ready", reason, held))

    def _become(self, state: State) -> None:
        before = self._state
        with self._changed:
            self._state = state
            self._changed.notify_all()
        if state.message and state.message != before.message:
            self._tell(state.message)

    def _tell(self, line: str) -> None:
        with contextlib.suppress(OSError):  # nobody reads the log any more, and the service goes on
            self._report(line)


def _without(head: CommitFacts) -> str:
    """The message for an index without a good commit."""
    if head.error:
        return f"the index could not be computed: {head.error}; see `lookalike status`"
    return "the index is being computed for the first time: see `lookalike status`"
