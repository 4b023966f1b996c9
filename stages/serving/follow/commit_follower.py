"""The state of what the service follows: the newest good commit of a repo, or the one that a branch points at.

A thread waits for commits and makes the next snapshot beside the one in use. Readers take `state()`, which is replaced
as a whole. Knows no files, no HTTP, and not what it follows: that is a `CommitSource`.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Literal, Protocol, TypeVar

from stages.datum.contract import StageError
from stages.serving.follow.pachyderm_client import Absent, CommitFacts, PachydermClient, PachydermError, Unreachable
from stages.serving.follow.snapshots import SnapshotState, StepReporter

_SnapshotT = TypeVar("_SnapshotT")

_TRY_EVERY = 2.0
"""Seconds between two attempts to reach a server, or to find a repo, that is not there."""

_LATER = 30.0
"""Seconds after a failure that only this machine, or another version, can end."""


@dataclass(frozen=True)
class NewestCommit:
    """The commit to serve; None without one, for the reason in `message`, with the state that this is. since: the
    commit after which to wait for another one. Beside a commit, `message` says why a newer one is not served, or ""."""

    commit: CommitFacts | None
    message: str = ""
    kind: Literal["loading", "empty", "failed"] = "loading"
    since: str = ""


class CommitSource(Protocol[_SnapshotT]):
    """What is followed. All methods may raise PachydermError and StageError, with a sentence for people.

    repo: whose commits these are. name: in words. empty: the message for a commit with nothing in it. other: what to
    do where a fixed commit does not exist.
    """

    repo: str
    name: str
    empty: str
    other: str

    def newest(self) -> NewestCommit:
        """The commit to serve now."""
        ...

    def open(self, commit: CommitFacts, before: _SnapshotT | None, say: StepReporter) -> _SnapshotT | None:
        """The snapshot of a finished commit, None if nothing is in it. before: the one in use."""
        ...

    def commit(self, held: _SnapshotT) -> str:
        """The id of a snapshot's commit."""
        ...

    def described(self, held: _SnapshotT) -> str:
        """Its content in words, such as "12 pictures"."""
        ...

    def wait(self, since: str, held: _SnapshotT | None, closing: threading.Event) -> _SnapshotT | None:
        """Waits for another commit, for a while, or until `closing`; returns the snapshot in use, perhaps renewed."""
        ...


class CommitFollower(Generic[_SnapshotT]):
    """Follows until `close`. at: the id of the only commit set to serve, "" for always the newest.

    report: takes a line for the log for each new state. optional: whether another one is followed beside it, so that
    it is no news that nothing is there, or that the server does not answer.
    """

    def __init__(
        self,
        server: PachydermClient,
        followed: CommitSource[_SnapshotT],
        at: str = "",
        report: Callable[[str], None] = print,
        optional: bool = False,
    ) -> None:
        self._server = server
        self._followed = followed
        self._at = at
        self._report = report
        self._optional = optional
        self._state = SnapshotState[_SnapshotT](
            "loading", f"asking the library's server at {server.at.url} for {followed.name}"
        )
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=f"following {followed.name}", daemon=True)
        self._failed = ("", "")  # the id of the commit that could not be opened, and the reason

    def start(self) -> None:
        """Begins to follow, in a thread."""
        self._thread.start()

    def state(self) -> SnapshotState[_SnapshotT]:
        """The state at this moment."""
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
                    self._fail(f"{error}; trying again", told=not self._optional)
                    self._closing.wait(_TRY_EVERY)
            except (PachydermError, StageError) as error:
                self._fail(str(error))
                if self._at:
                    return
                self._closing.wait(_TRY_EVERY)
            except OSError as error:
                self._fail(f"{error.filename or 'this machine'}: {error.strerror or error}; trying again")
                self._closing.wait(_LATER)
            except Exception as error:  # a thread that ended would leave the state as it is for ever
                self._fail(f"a fault of lookalike's own, please report it ({type(error).__name__}: {error})")
                if self._at:
                    return
                self._closing.wait(_LATER)

    def _fixed(self) -> CommitFacts:
        repo = self._followed.repo
        self._say(f"waiting until commit {self._at[:12]} of {repo} is finished")
        try:
            found = self._server.commit(repo, self._at, wait=True)
        except Absent as error:
            raise StageError(f"{repo} has no commit {self._at}: {self._followed.other}") from error
        if found.error:
            raise StageError(f"commit {found.id} of {repo} failed: {found.error}")
        return found

    def _step(self) -> None:
        """Serves the commit to serve, and waits for the next one."""
        newest = self._followed.newest()
        commit, held = newest.commit, self._state.snapshot
        if commit is None:
            keeps = held is not None and newest.kind != "empty"
            self._become(
                replace(self._state, message=newest.message) if keeps else SnapshotState(newest.kind, newest.message)
            )
        elif held is not None and commit.id == self._followed.commit(held):
            self._become(SnapshotState("ready", newest.message, held))
        elif commit.id == self._failed[0]:
            self._fail(self._failed[1])
        else:
            self._serve(commit)
        held = self._state.snapshot
        renewed = self._followed.wait(newest.since, held, self._closing)
        if renewed is not held:
            self._become(replace(self._state, snapshot=renewed))

    def _serve(self, commit: CommitFacts) -> None:
        began = time.monotonic()
        before = self._state.snapshot
        try:
            snapshot = self._followed.open(commit, before, self._say)
        except Absent as error:
            raise StageError(f"a file of commit {commit.id} of {commit.repo} is gone: {error}") from error
        except (PachydermError, OSError):
            raise
        except StageError as error:
            self._failed = commit.id, str(error)
            raise
        except Exception as error:
            self._failed = commit.id, f"a fault of lookalike's own, please report it ({type(error).__name__}: {error})"
            raise
        if snapshot is None:
            self._become(SnapshotState("empty", self._followed.empty))
            return
        self._become(SnapshotState("ready", "", snapshot))
        content = self._followed.described(snapshot)
        self._tell(f"ready in {time.monotonic() - began:.1f} s: {content} of commit {commit.id[:12]}")

    def _say(self, step: str) -> None:
        """The next step of loading; while a snapshot is in use only the log tells it."""
        if self._state.snapshot is None:
            self._become(SnapshotState("loading", step))

    def _fail(self, reason: str, told: bool = True) -> None:
        """A failure; a snapshot that is in use stays."""
        held = self._state.snapshot
        self._become(SnapshotState("failed", reason) if held is None else SnapshotState("ready", reason, held), told)

    def _become(self, state: SnapshotState[_SnapshotT], told: bool = True) -> None:
        before = self._state
        self._state = state
        told = told and not (self._optional and state.kind == "empty")
        if told and state.message and state.message != before.message:
            self._tell(state.message)

    def _tell(self, line: str) -> None:
        with contextlib.suppress(OSError):  # nobody reads the log any more, and the service goes on
            self._report(line)
