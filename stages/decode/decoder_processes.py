"""Pictures decoded in processes of their own: a decoder that a hostile file crashes takes no more with it than itself.

Owns the processes, as many as this machine has cores, and the messages to them. The pixels are those of
`stages.decode.picture_normaliser.normalise`, which each process calls. Knows no files.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import queue
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np

from stages.decode import picture_normaliser
from stages.decode.decoders import BadPicture
from stages.decode.picture_normaliser import NormalisedPicture, PictureRegion
from stages.record.file_kinds import FileKind
from stages.record.framing import Framing, PictureSquare
from stages.record.sources import Source

MOST = 4
"""Most processes: with more, reading the files is what takes the time."""

LONGEST = 600.0
"""Seconds after which a picture is given up. The limits on pictures end before that, on any machine."""

LARGE = 12_000_000
"""Pixels of a picture that is decoded while no other process decodes one as large: two of the largest at the same time
would take more memory than a datum may."""

_LOCK = "LOOKALIKE_DECODING"  # the variable that names the descriptor of the lock of large pictures

_CONTENTS = ("bytes", "coded", "thumbnail")
"""The sizes in a reply: of the pixels, of the picture for a pack, and of its thumbnail, which follow it."""

_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
"""The signals that a faulty decoder ends with. All others are the machine's doing, or the user's."""


class DecoderProcesses:
    """Decodes pictures, several at a time. The first process starts at once, the others with the pictures for them; all
    end with `close`, or with this process."""

    def __init__(self, most: int | None = None, program: Sequence[str] = ()) -> None:
        """most: processes; by default one for each core, up to MOST. program: starts a process, for tests."""
        count = most or min(MOST, len(os.sched_getaffinity(0)))
        self._lock = tempfile.TemporaryFile(prefix="lookalike-")  # noqa: SIM115  closed by `close`
        self._idle: queue.LifoQueue[_Process] = queue.LifoQueue()  # the last one is running already
        self._processes = [_Process(self._lock, program or _program()) for _ in range(count)]
        self._processes[-1].start()  # while the first file is read
        for each in self._processes:
            self._idle.put(each)
        self._threads = ThreadPoolExecutor(count, "decode")

    def __enter__(self) -> DecoderProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def count(self) -> int:
        """The pictures that are decoded at the same time."""
        return len(self._processes)

    def submit(self, data: bytes, kind: FileKind, framing: Framing) -> Future[NormalisedPicture]:
        """The picture in the bytes of a file of that kind with its thumbnail, once it is decoded. Fails as `normalise`
        does."""
        return self._threads.submit(partial(self.normalise, data, kind, framing, shown=True))

    def normalise(
        self, data: bytes, kind: FileKind, framing: Framing, region: PictureRegion | None = None, shown: bool = False
    ) -> NormalisedPicture:
        """`stages.decode.picture_normaliser.normalise` in one of the processes. May be called from any thread.

        Raises BadPicture for a file that crashes its decoder, too; MemoryError if the machine has too little memory;
        RuntimeError if the process does not start, or is ended from outside.
        """
        process = self._idle.get()
        try:
            return process.normalise(data, _Asked(kind, framing, region, shown))
        finally:
            self._idle.put(process)

    def close(self) -> None:
        """Ends the processes, those that still decode as well."""
        for each in self._processes:
            each.kill()
        self._threads.shutdown(cancel_futures=True)
        for each in self._processes:
            each.end()
        self._lock.close()


class _Asked(NamedTuple):
    """The arguments of `stages.decode.picture_normaliser.normalise` beside the file."""

    kind: FileKind
    framing: Framing
    region: PictureRegion | None
    shown: bool

    def as_facts(self) -> dict[str, Any]:
        """For a message."""
        side, fit = self.framing.side, self.framing.fit
        return {"kind": self.kind.name, "side": side, "fit": fit, "region": self.region, "shown": self.shown}


class _Process:
    """One process. Belongs to one thread at a time, but `kill` to any."""

    def __init__(self, lock: IO[bytes], program: Sequence[str]) -> None:
        self._lock = lock
        self._program = program
        self._running: subprocess.Popen[bytes] | None = None
        self._greeted = False

    def start(self) -> subprocess.Popen[bytes]:
        """Starts it unless it runs; does not wait until it can decode."""
        if self._running is None:
            number = self._lock.fileno()
            self._greeted = False
            self._running = subprocess.Popen(
                self._program,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, _LOCK: str(number)},
                pass_fds=[number],
            )
        return self._running

    def normalise(self, data: bytes, asked: _Asked) -> NormalisedPicture:
        """See DecoderProcesses. After a failure the next call starts it again."""
        kind, framing = asked.kind, asked.framing
        running = self.start()
        assert running.stdin is not None and running.stdout is not None
        try:
            self._greet(running.stdout)
            _send(running.stdin, asked.as_facts() | {"bytes": len(data)}, data)
            if not _readable(running.stdout, LONGEST):
                running.kill()
                raise BadPicture(f"a {kind.value} picture that takes more than {LONGEST / 60:g} minutes to decode")
            reply = _received(running.stdout)
            pixels, coded, thumbnail = (running.stdout.read(reply.get(name, 0)) for name in _CONTENTS)
        except (OSError, EOFError):
            raise self._ended(running.wait(), kind) from None
        finally:
            if running.poll() is not None:
                self.end()
        if "bad" in reply:
            raise BadPicture(reply["bad"])
        if "memory" in reply:
            raise MemoryError(reply["memory"])
        square = np.frombuffer(pixels, np.uint8).reshape(framing.side, framing.side, 3)
        framed = PictureSquare(square, tuple(reply["framed"]))
        return NormalisedPicture(framed, Source(*reply["facts"]), coded, thumbnail)

    def kill(self) -> None:
        """Ends it, whatever it does."""
        if self._running is not None:
            self._running.kill()

    def end(self) -> None:
        """Ends it, and takes back what it had."""
        self.kill()
        running, self._running = self._running, None
        if running is not None:
            running.wait()
            for each in (running.stdin, running.stdout):
                if each is not None:
                    with contextlib.suppress(OSError):  # for what was not sent any more
                        each.close()

    def _greet(self, from_: IO[bytes]) -> None:
        if not self._greeted:
            _received(from_)
            self._greeted = True

    def _ended(self, status: int, kind: FileKind) -> Exception:
        """The reason for which it ended."""
        name = signal.Signals(-status).name if status < 0 else f"status {status}"
        if not self._greeted:
            return RuntimeError(f"the process that decodes pictures does not start: it ended with {name}")
        if status == -signal.SIGKILL:
            return MemoryError("the system killed the decoder of a picture, as it does when memory runs out")
        if -status in _CRASHES:
            return BadPicture(f"damaged {kind.value} picture: its decoder ended with {name}")
        return RuntimeError(f"the process that decodes pictures ended with {name}")


def _program() -> list[str]:
    """Starts this module with the packages that this process sees."""
    start = f"import sys; sys.path[:0] = {sys.path!r}; from stages.decode.decoder_processes import main; main()"
    return [sys.executable, "-c", start]


def _readable(stream: IO[bytes], seconds: float) -> bool:
    """Whether there is something to read within some seconds. select() refuses the files of a process with more than a
    thousand open ones, as the service has with as many connections."""
    waiting = select.poll()
    waiting.register(stream, select.POLLIN)
    return bool(waiting.poll(1000 * seconds))


def _send(to: BinaryIO | IO[bytes], facts: Mapping[str, Any], *contents: bytes) -> None:
    head = json.dumps(facts).encode("ascii")
    to.write(len(head).to_bytes(4, "big") + head)
    to.writelines(contents)
    to.flush()


def _received(from_: BinaryIO | IO[bytes]) -> dict[str, Any]:
    """The facts of the next message. Raises EOFError at the end."""
    size = from_.read(4)
    head = from_.read(int.from_bytes(size, "big")) if len(size) == 4 else b""
    if not head:
        raise EOFError
    facts: dict[str, Any] = json.loads(head)
    return facts


def main() -> None:
    """The process: a picture in, its pixels out, until the other side closes."""
    given, out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library that prints must not come between
    lock = int(os.environ[_LOCK])
    _send(out, {"ready": True})
    while True:
        try:
            asked = _received(given)
        except EOFError:
            return
        data = given.read(asked["bytes"])
        framing = Framing(asked["side"], asked["fit"])
        region = tuple(asked["region"]) if asked["region"] else None
        try:
            found = picture_normaliser.normalise(
                data, FileKind[asked["kind"]], framing, region, partial(_alone, lock), asked["shown"]
            )
        except BadPicture as reason:
            _send(out, {"bad": str(reason)})
        except MemoryError as reason:
            _send(out, {"memory": str(reason)})
        else:
            pixels = np.ascontiguousarray(found.framed.pixels).tobytes()
            contents = pixels, found.coded, found.thumbnail
            sizes = dict(zip(_CONTENTS, map(len, contents), strict=True))
            _send(out, {"framed": found.framed.size, "facts": found.facts} | sizes, *contents)


@contextmanager
def _alone(lock: int, pixels: int) -> Iterator[None]:
    """Holds the lock while a large picture is decoded. The system gives it back if this process ends."""
    if pixels < LARGE:
        yield
        return
    with contextlib.suppress(OSError):  # of a file system that knows no locks
        fcntl.lockf(lock, fcntl.LOCK_EX)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            fcntl.lockf(lock, fcntl.LOCK_UN)


if __name__ == "__main__":
    main()
