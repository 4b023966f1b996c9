"""Lazy inputs: named pipes that are filled when they are opened. Knows neither datums nor the meaning of the files.

Each pipe is held open for writing from the start, so that a reader's open() returns at once and inotify reports it; one
thread then feeds all the pipes that have a reader. A pipe is read once: before its reader gets a first byte, a guard
takes its place, a pipe that is never filled. So a second reader finds the guard, however late the thread is. Two that
came before the guard may be one event of inotify, which merges them: so the openings are counted once it is in place,
since from then on each further one is an event of its own.
"""

import contextlib
import fcntl
import os
import selectors
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from localpachd.worker.layout import linux_files, open_files
from localpachd.worker.layout.linux_files import OPENED, Inotify, swap
from localpachd.worker.layout.pipe_budget import PipeBudget

_BUFFER = 1 << 20
_SET_PIPE_SIZE = getattr(fcntl, "F_SETPIPE_SZ", None)


@dataclass(slots=True)
class _Pipe:
    """A pipe that waits for its reader; `pieces` while it is being read, `served` after that.

    `writer` and `guard` are our ends of the pipe and of its guard. `node` is the pipe's inode.
    """

    path: str
    shown: str
    read: Callable[[], Iterable[bytes]]
    writer: int | None
    node: int
    guard: int | None = None
    served: bool = False
    pieces: Iterator[bytes] | None = None
    left: memoryview = field(default_factory=lambda: memoryview(b""))


class LazyPipes:
    """The named pipes of one attempt at a datum after the other: `add`, `start`, `clear`, and in the end `close`.

    `nursery` is a directory that processes do not look into, on the file system of the pipes; it is made when needed.
    `note` gets messages for the user, `misused` the reason why the datum cannot continue: a pipe was opened a second
    time, where Pachyderm would leave the reader waiting for ever. Both are called from another thread.
    """

    def __init__(
        self, budget: PipeBudget, nursery: Path, note: Callable[[str], None], misused: Callable[[str], None]
    ) -> None:
        self._budget = budget
        self._nursery = nursery
        self._den = nursery  # for the guards of one attempt
        self._note = note
        self._misused = misused
        self._pipes: list[_Pipe] = []
        self._watched: dict[int, _Pipe] = {}
        self._younger = open_files.YoungerProcesses()
        self._inotify: Inotify | None = None
        self._stop: tuple[int, int] | None = None
        self._thread: threading.Thread | None = None
        self.bytes_served = 0

    def add(self, path: str, shown: str, read: Callable[[], Iterable[bytes]]) -> bool:
        """Makes a named pipe at `path` with the bytes that `read()` yields; call before `start`.

        `shown` is its name for the user. False when the system allows no more pipes: the file must be put in place.
        """
        if not self._budget.take():
            return False
        writer: int | None = None
        try:
            if self._inotify is None:
                self._inotify = Inotify()
            elif not self._pipes:
                self._inotify.forget()
            os.mkfifo(path)
            writer = _writer(path)
            pipe = _Pipe(path, shown, read, writer, os.fstat(writer).st_ino)
            self._watched[self._inotify.watch(path)] = pipe
        except OSError:
            if writer is not None:
                os.close(writer)
            Path(path).unlink(missing_ok=True)
            self._budget.give_back(1)
            return False
        self._pipes.append(pipe)
        return True

    def start(self) -> None:
        if self._pipes and self._inotify is not None:
            self._den = self._made_den()
            self._younger = open_files.YoungerProcesses()
            self._stop = os.pipe()
            self._thread = threading.Thread(
                target=self._serve, args=(self._inotify, self._stop[0]), name="lazy-pipes", daemon=True
            )
            self._thread.start()

    def _made_den(self) -> Path:
        """A new directory for guards, which are made and deleted by the thousand."""
        if not self._nursery.is_dir():
            self._nursery.mkdir(mode=0o700)
            linux_files.spread_directories(self._nursery)
        den = self._nursery / uuid4().hex
        den.mkdir()
        return den

    def clear(self) -> None:
        """Stops serving and forgets the pipes; remaining readers see the end of the file."""
        if self._stop is not None and self._thread is not None:
            os.close(self._stop[1])
            self._thread.join()
            os.close(self._stop[0])
            self._stop = self._thread = None
            with contextlib.suppress(OSError):  # the whole nursery goes with the workplace
                self._den.rmdir()
        for pipe in self._pipes:
            for end in (pipe.writer, pipe.guard):
                if end is not None:
                    os.close(end)
        self._budget.give_back(len(self._pipes))
        self._pipes.clear()
        self._watched.clear()
        self.bytes_served = 0

    def close(self) -> None:
        """Clears, and releases the system's resources, which takes several milliseconds."""
        self.clear()
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None

    def _serve(self, inotify: Inotify, stop: int) -> None:
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(stop, selectors.EVENT_READ)
                selector.register(inotify.fileno, selectors.EVENT_READ)
                while self._round(selector, inotify, stop):
                    pass
        except Exception as failure:  # whatever it is, no reader may wait for bytes that will not come
            self._misused(f"cannot serve the lazy files: {failure}")

    def _round(self, selector: selectors.BaseSelector, inotify: Inotify, stop: int) -> bool:
        """Does what can be done without waiting; False when it is time to stop."""
        for key, _ in selector.select():
            if key.fd == stop:
                return False
            if key.fd == inotify.fileno:
                self._opened(selector, inotify)
            elif key.data.writer == key.fd:
                self._feed(key.data)
                if key.data.served:
                    selector.unregister(key.fd)
                    self._close(key.data)
        return True

    def _opened(self, selector: selectors.BaseSelector, inotify: Inotify) -> None:
        """Begins to feed the pipes that were opened; opening one, or its guard, a second time is misuse. Readers are
        counted for all of them together: it takes as long as for one."""
        begun: dict[int, _Pipe] = {}
        for watch, mask in inotify.events():
            pipe = self._watched.get(watch) if mask & OPENED else None
            if pipe is None:
                continue
            if pipe.served or pipe.pieces is not None or pipe.writer is None or pipe.writer in begun:
                self._opened_again(pipe)
            else:
                self._guard(inotify, pipe)
                begun[pipe.writer] = pipe
        if not begun:  # files were closed, no more
            return
        for writer, readers in open_files.count_openings(begun, self._younger).items():
            if readers > 1:
                begun[writer].served = True
                self._opened_again(begun[writer])
            else:
                self._begin(selector, begun[writer], writer)

    def _begin(self, selector: selectors.BaseSelector, pipe: _Pipe, writer: int) -> None:
        if _SET_PIPE_SIZE is not None:
            with contextlib.suppress(OSError):
                fcntl.fcntl(writer, _SET_PIPE_SIZE, _BUFFER)
        pipe.pieces = iter(pipe.read())
        while self._feed(pipe):  # a small file fits into the pipe
            pass
        if pipe.served:
            self._close(pipe)
        else:
            selector.register(writer, selectors.EVENT_WRITE, pipe)

    def _opened_again(self, pipe: _Pipe) -> None:
        self._misused(
            f"the lazy file {pipe.shown} was opened a second time, where Pachyderm would wait for ever: open it once,"
            " read it to its end, and copy it to a temporary file if it is needed again"
        )

    def _guard(self, inotify: Inotify, pipe: _Pipe) -> None:
        """Puts a guard in a pipe's place, unless user code has replaced or deleted the pipe.

        The budget counts a pipe and its guard as one: our end of the pipe is closed soon.
        """
        guard = f"{self._den}/{pipe.node}"
        with contextlib.suppress(OSError):
            os.mkfifo(guard)
            pipe.guard = _writer(guard)
            made, found = os.fstat(pipe.guard), os.lstat(pipe.path)
            if (made.st_uid, made.st_gid) != (found.st_uid, found.st_gid):
                os.chown(guard, found.st_uid, found.st_gid)
            if made.st_mode != found.st_mode:
                os.chmod(guard, stat.S_IMODE(found.st_mode))  # noqa: PTH101 (this runs for each of thousands of files)
            self._watched[inotify.watch(guard)] = pipe
            if found.st_ino == pipe.node:
                swap(guard, pipe.path)
                if os.lstat(guard).st_ino != pipe.node:  # user code has replaced the pipe meanwhile
                    swap(guard, pipe.path)
        with contextlib.suppress(OSError):
            os.unlink(guard)  # noqa: PTH108

    def _feed(self, pipe: _Pipe) -> bool:
        """Writes the next piece, as much as there is room for; returns whether that was all of it. The pipe is `served`
        once there are no more."""
        assert pipe.writer is not None and pipe.pieces is not None
        try:
            if not pipe.left:
                piece = next(pipe.pieces, None)
                if piece is None:
                    pipe.served = True
                    return False
                pipe.left = memoryview(piece)
                self.bytes_served += len(piece)
            written = os.write(pipe.writer, pipe.left)
            pipe.left = pipe.left[written:]
            return not pipe.left
        except BlockingIOError:
            return False
        except BrokenPipeError:
            self._note(f"{pipe.shown} was not read to its end; Pachyderm fails a datum that stops reading a lazy file")
        except Exception as failure:  # the store has lost it: the reader must not mistake a part for the whole
            self._misused(f"cannot read {pipe.shown}: {failure}")
        pipe.served = True
        return False

    @staticmethod
    def _close(pipe: _Pipe) -> None:
        """Ends a pipe that is served: its reader sees the end of the file."""
        assert pipe.writer is not None
        os.close(pipe.writer)
        pipe.writer, pipe.pieces, pipe.left = None, None, memoryview(b"")


def _writer(path: str) -> int:
    """Opens a pipe for writing although it has no reader, by being one for a moment."""
    both = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    finally:
        os.close(both)
