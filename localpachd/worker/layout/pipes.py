"""Lazy inputs: named pipes that are filled when somebody opens them. Knows neither datums nor what the files are.

Each pipe is held open for writing from the start, so that a reader's open() returns at once and inotify can tell of it;
one thread then feeds all the pipes that have a reader.
"""

import contextlib
import fcntl
import os
import select
import selectors
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from localpachd.worker.layout.budget import PipeBudget
from localpachd.worker.layout.inotify import CLOSED_READER, CLOSED_WRITER, OPENED, Inotify

_BUFFER = 1 << 20
_CLOSES_WITHIN = 1.0
"""Seconds in which a reader of whose closing inotify has told has closed."""
_LOOK_EVERY = 0.02
_SET_PIPE_SIZE = getattr(fcntl, "F_SETPIPE_SZ", None)


@dataclass(slots=True)
class _Pipe:
    """A pipe that waits for its first reader; `pieces` while it is being read, `served` after that.

    `deserted`: the reader has closed it. `closing`: so many times we have closed it and not yet been told so.
    """

    path: Path
    shown: str
    read: Callable[[], Iterable[bytes]]
    writer: int | None
    served: bool = False
    deserted: bool = False
    closing: int = 0
    pieces: Iterator[bytes] | None = None
    left: memoryview = field(default_factory=lambda: memoryview(b""))


class LazyPipes:
    """The named pipes of one attempt at a datum after the other: `add`, `start`, `clear`, and in the end `close`.

    `note` is told what the user should know of, `misused` the reason why the datum cannot go on: a pipe was opened a
    second time, where Pachyderm would leave the reader waiting for ever. Both are called from another thread.
    """

    def __init__(self, budget: PipeBudget, note: Callable[[str], None], misused: Callable[[str], None]) -> None:
        self._budget = budget
        self._note = note
        self._misused = misused
        self._pipes: dict[int, _Pipe] = {}
        self._doubtful: dict[int, tuple[_Pipe, float]] = {}
        self._inotify: Inotify | None = None
        self._stop: tuple[int, int] | None = None
        self._thread: threading.Thread | None = None
        self.bytes_served = 0

    def add(self, path: Path, shown: str, read: Callable[[], Iterable[bytes]]) -> bool:
        """Makes a named pipe at `path` that gives what `read()` gives; call before `start`.

        `shown` names it to the user. False when this system can have no more pipes: the file must be put in place.
        """
        if not self._budget.take():
            return False
        pipe: _Pipe | None = None
        try:
            if self._inotify is None:
                self._inotify = Inotify()
            os.mkfifo(path)
            pipe = _Pipe(path, shown, read, None)
            self._arm(pipe)
            self._pipes[self._inotify.watch(path)] = pipe
        except OSError:
            if pipe is not None and pipe.writer is not None:
                os.close(pipe.writer)
            path.unlink(missing_ok=True)
            self._budget.give_back(1)
            return False
        return True

    def start(self) -> None:
        """Begins to serve the pipes."""
        if self._pipes and self._inotify is not None:
            self._stop = os.pipe()
            self._thread = threading.Thread(
                target=self._serve, args=(self._inotify, self._stop[0]), name="lazy-pipes", daemon=True
            )
            self._thread.start()

    def clear(self) -> None:
        """Stops serving and forgets the pipes; whoever still reads sees the end of the file."""
        if self._stop is not None and self._thread is not None:
            os.close(self._stop[1])
            self._thread.join()
            os.close(self._stop[0])
            self._stop = self._thread = None
        for pipe in self._pipes.values():
            if pipe.writer is not None:
                os.close(pipe.writer)
        self._doubtful.clear()
        self._budget.give_back(len(self._pipes))
        self._pipes.clear()
        self.bytes_served = 0

    def close(self) -> None:
        """Clears, and lets go of the system's resources, which takes it several milliseconds."""
        self.clear()
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None

    def _arm(self, pipe: _Pipe) -> None:
        """Opens a pipe for writing, which needs a reader for a moment: one whose end looks unlike a real reader's."""
        both = os.open(pipe.path, os.O_RDWR | os.O_NONBLOCK)
        try:
            pipe.writer = os.open(pipe.path, os.O_WRONLY | os.O_NONBLOCK)
        finally:
            os.close(both)

    def _serve(self, inotify: Inotify, stop: int) -> None:
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(stop, selectors.EVENT_READ)
                selector.register(inotify.fileno, selectors.EVENT_READ)
                while self._round(selector, inotify, stop):
                    pass
        except Exception as failure:  # whatever it is, nobody may wait for what will not come
            self._misused(f"cannot serve the lazy files: {failure}")

    def _round(self, selector: selectors.BaseSelector, inotify: Inotify, stop: int) -> bool:
        """Does what can be done without waiting; False when it is time to stop."""
        for key, _ in selector.select(_LOOK_EVERY if self._doubtful else None):
            if key.fd == stop:
                return False
            if key.fd == inotify.fileno:
                for watch, mask in inotify.events():
                    self._happened(selector, watch, mask)
            elif key.data.writer == key.fd:
                self._feed(selector, key.data)
        self._settle_doubts()
        return True

    def _settle_doubts(self) -> None:
        """Sees which readers have gone after all; those that stay have opened a pipe a second time."""
        for writer, (pipe, deadline) in list(self._doubtful.items()):
            if not _has_reader(writer):
                del self._doubtful[writer]
            elif time.monotonic() > deadline:
                del self._doubtful[writer]
                self._opened_again(pipe)

    def _happened(self, selector: selectors.BaseSelector, watch: int, mask: int) -> None:
        pipe = self._pipes.get(watch)
        if pipe is None:
            return
        if mask & CLOSED_WRITER:
            pipe.closing = max(0, pipe.closing - 1)
        elif mask & OPENED and not pipe.closing:  # otherwise it was us
            if pipe.served or pipe.pieces is not None:
                self._opened_again(pipe)
            else:
                self._open(selector, pipe)
        elif mask & CLOSED_READER:
            pipe.deserted = True
            if pipe.served and pipe.writer is None:
                self._rearm(pipe)

    def _open(self, selector: selectors.BaseSelector, pipe: _Pipe) -> None:
        assert pipe.writer is not None
        if _SET_PIPE_SIZE is not None:
            with contextlib.suppress(OSError):
                fcntl.fcntl(pipe.writer, _SET_PIPE_SIZE, _BUFFER)
        pipe.pieces = iter(pipe.read())
        selector.register(pipe.writer, selectors.EVENT_WRITE, pipe)

    def _feed(self, selector: selectors.BaseSelector, pipe: _Pipe) -> None:
        assert pipe.writer is not None and pipe.pieces is not None
        try:
            if not pipe.left:
                piece = next(pipe.pieces, None)
                if piece is None:
                    self._done(selector, pipe)
                    return
                pipe.left = memoryview(piece)
                self.bytes_served += len(piece)
            written = os.write(pipe.writer, pipe.left)
            pipe.left = pipe.left[written:]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._note(f"{pipe.shown} was not read to its end; Pachyderm fails a datum that stops reading a lazy file")
            self._done(selector, pipe)
        except Exception as failure:  # the store has lost it: the reader must not take what it got for the whole
            self._misused(f"cannot read {pipe.shown}: {failure}")
            self._done(selector, pipe)

    def _done(self, selector: selectors.BaseSelector, pipe: _Pipe) -> None:
        assert pipe.writer is not None
        selector.unregister(pipe.writer)
        os.close(pipe.writer)
        pipe.closing += 1
        pipe.writer, pipe.pieces, pipe.served, pipe.left = None, None, True, memoryview(b"")
        if pipe.deserted:
            self._rearm(pipe)

    def _rearm(self, pipe: _Pipe) -> None:
        """Opens a pipe that was read once more, so as to notice who tries to read it again."""
        with contextlib.suppress(OSError):  # deleted by its reader, as a rule
            self._arm(pipe)
            pipe.closing += 1
            # Who came while we did this is not told of: his opening looks like ours. But whom we were told has closed
            # the pipe may be a little longer in doing so.
            if pipe.writer is not None and _has_reader(pipe.writer):
                self._doubtful[pipe.writer] = pipe, time.monotonic() + _CLOSES_WITHIN

    def _opened_again(self, pipe: _Pipe) -> None:
        self._misused(
            f"the lazy file {pipe.shown} was opened a second time, where Pachyderm would wait for ever: open it once,"
            " read it to its end, and copy it to a temporary file if it is needed again"
        )


def _has_reader(writer: int) -> bool:
    """Whether somebody has the other end of a pipe open."""
    poll = select.poll()
    poll.register(writer, 0)
    return not any(events & select.POLLERR for _, events in poll.poll(0))
