"""The processes to measure: a localpachd, and bare servers for the bounds. Measures nothing."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import grpc.experimental
import python_pachyderm

from benchmarks.kit import disk
from benchmarks.kit.trees import status_mib

_PORT = re.compile(r"listening on .*:(\d+)\n")
_QUICK = ((grpc.experimental.ChannelOptions.SingleThreadedUnaryStream, 1),)
"""A client that reads a stream in its own thread, with half the processor time: the server is to be measured."""
_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: its process, its port and its own directory."""

    process: subprocess.Popen[str]
    port: int
    directory: Path

    def client(self) -> python_pachyderm.Client:
        """A new client of the server."""
        return python_pachyderm.Client(host="127.0.0.1", port=self.port)

    def undecoded(self, call: str, request: bytes) -> Iterator[bytes]:
        """The encoded replies of a call whose reply is a stream."""
        with grpc.insecure_channel(f"127.0.0.1:{self.port}", _QUICK) as channel:
            replies: grpc.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(f"/{call}")
            yield from replies(request)

    def repeat(self, call: str, request: bytes, times: int) -> None:
        """Makes a call with one reply several times, one after another, without decoding the replies."""
        with grpc.insecure_channel(f"127.0.0.1:{self.port}") as channel:
            ask: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(f"/{call}")
            for _ in range(times):
                ask(request)

    @property
    def memory(self) -> float:
        """The memory held now, in MiB."""
        return status_mib(self.process.pid, "VmRSS")

    @property
    def peak(self) -> float:
        """The most memory held since the start or the last `forget_peak`, in MiB."""
        return status_mib(self.process.pid, "VmHWM")

    def forget_peak(self) -> None:
        """Restarts the measurement of the peak."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def disk(self) -> float:
        """The disk space of its directory, in MiB."""
        return disk.mib(self.directory)


@contextmanager
def localpachd(*options: str, root: Path | None = None) -> Iterator[Server]:
    """A localpachd on a free port and on `root`, which is kept, or on a temporary root directory. Raises RuntimeError
    if it does not start."""
    with ExitStack() as stack:
        if root is None:
            root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="localpachd-"))) / "root"
        arguments = ("localpachd", "--root", str(root), "--port", "0", *options)
        yield stack.enter_context(_running(arguments, root))


def end_left(process: int, root: Path) -> bool:
    """Ends the localpachd of this process number that a killed benchmark has left running on `root`; returns whether
    there was one."""
    at = Path(f"/proc/{process}")
    try:
        if str(root).encode() not in (at / "cmdline").read_bytes().split(b"\0"):
            return False
        os.kill(process, signal.SIGTERM)
    except (FileNotFoundError, ProcessLookupError):
        return False
    while at.exists() and (at / "cmdline").read_bytes():  # a zombie's is empty
        time.sleep(0.1)
    return True


@contextmanager
def bare(*arguments: str) -> Iterator[Server]:
    """One of the servers of `benchmarks.server.bare`."""
    with (
        tempfile.TemporaryDirectory(prefix="bare-") as directory,
        _running(("benchmarks.server.bare", *arguments), Path(directory)) as server,
    ):
        yield server


@contextmanager
def http_peer(*arguments: str) -> Iterator[Server]:
    """One of the servers of `benchmarks.service.httppeers`."""
    with (
        tempfile.TemporaryDirectory(prefix="peer-") as directory,
        _running(("benchmarks.service.httppeers", *arguments), Path(directory)) as server,
    ):
        yield server


@contextmanager
def _running(module: tuple[str, ...], directory: Path) -> Iterator[Server]:
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *module], cwd=_ROOT, stdout=subprocess.PIPE, stderr=log, text=True
        )
        assert process.stdout is not None
        try:
            found = _PORT.search(process.stdout.readline())
            if found is None:
                process.kill()
                log.seek(0)
                raise RuntimeError(f"{module[0]} did not start: {log.read().strip()}")
            yield Server(process, int(found[1]), directory)
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()
