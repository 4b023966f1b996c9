"""A localpachd that is killed again and again, on a disk whose power can be cut where this machine allows it."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import python_pachyderm

from tests.forking import readable
from tests.localpachd import power_disk
from tests.localpachd.power_disk import PowerDisk

_PROGRAM = (
    "import sys; from localpachd import server; from localpachd.storage import garbage_collector\n"
    "from localpachd.program import main\n"
    "server._BETWEEN_CHORES = 0.5; garbage_collector.KEPT = 0.0; sys.exit(main())"
)
"""A server that sweeps twice a second and deletes for good at once, not once an hour and after a day: each round has
many sweeps."""
_MARK = "LOOKALIKE_ENDURANCE"
_LONGEST_END = 10.0
_LONGEST_SWEEP = 60.0
_EMPTY = 64.0
"""The disk space in MiB of a library without content: database, log of changes, and logs of jobs."""
_MEBI = 1 << 20


class RestartedServer:
    """A server on a root directory of its own below `directory`, and each of its lives."""

    def __init__(self, directory: Path, disk: PowerDisk | None = None) -> None:
        self._disk = disk
        self._place = directory if disk is None else disk.root
        self._log = directory / "server.log"
        self._mark = uuid4().hex
        self._process: subprocess.Popen[str] | None = None
        self.address = ""
        self.start_seconds: list[float] = []

    @property
    def root(self) -> Path:
        return self._place / "root"

    @property
    def memory(self) -> float:
        """The memory that the server holds, in MiB."""
        status = Path(f"/proc/{self._running.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) / 1024

    @property
    def disk(self) -> float:
        """The disk space of the root, in MiB."""
        blocks = 0
        for place, _, names in os.walk(self.root):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    blocks += Path(place, name).lstat().st_blocks
        return blocks * 512 / _MEBI

    @property
    def running(self) -> bool:
        """Whether the server has not ended by itself."""
        return self._running.poll() is None

    @property
    def _running(self) -> subprocess.Popen[str]:
        assert self._process is not None
        return self._process

    def start(self) -> None:
        """Starts the server. Raises RuntimeError with the end of its log if it does not start."""
        begun = time.perf_counter()
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, "--root", str(self.root), "--port", "0", "--pass-env", _MARK],
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, _MARK: self._mark},
                text=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = re.search(r"listening on (grpc://\S+)", line)
        if found is None:
            raise RuntimeError(f"the server did not start: {self.log[-2000:]}")
        self.start_seconds.append(time.perf_counter() - begun)
        self.address = found[1]

    @property
    def log(self) -> str:
        """All that the server has said in its lives."""
        return self._log.read_text(errors="replace")

    @property
    def tracebacks(self) -> list[str]:
        """What the server has logged of its own errors, each from its first line on."""
        parts = self.log.split("Traceback (most recent call last)")
        return [f"{before[-300:]}Traceback{after[:3000]}" for before, after in pairwise(parts)]

    def client(self) -> python_pachyderm.Client:
        """A new client."""
        host, _, port = self.address.removeprefix("grpc://").rpartition(":")
        return python_pachyderm.Client(host=host, port=int(port))

    def kill(self) -> list[str]:
        """Kills the server, if it runs; returns what it left running."""
        if self._process is None:
            return []
        self._process.kill()
        return self._gone()

    def leaks(self) -> list[str]:
        """What is left on the disk of a library that is empty now, once all sweeps are done."""
        until = time.monotonic() + _LONGEST_SWEEP
        while (left := self._left()) and time.monotonic() < until:
            time.sleep(0.2)
        return left

    def stop(self) -> tuple[float, list[str]]:
        """Stops the server as an operator would; returns the seconds that it took, and what is still running."""
        begun = time.perf_counter()
        self._running.send_signal(signal.SIGTERM)
        self._running.wait(60)
        return time.perf_counter() - begun, self._gone()

    def cut(self) -> list[str]:
        """Cuts the power of the disk at the moment at which the server is killed."""
        left = self.kill()
        assert self._disk is not None
        self._place = self._disk.cut()
        return left

    def fsck(self, *options: str) -> list[str]:
        """The damage that `localpachd fsck` reports, by which the server is not disturbed."""
        command = [sys.executable, "-m", "localpachd", "fsck", *options, str(self.root)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return [] if done.returncode == 0 else [f"fsck: {line}" for line in (done.stdout + done.stderr).splitlines()]

    def _left(self) -> list[str]:
        files = [each for name in ("chunks", "scratch") for each in (self.root / name).rglob("*") if each.is_file()]
        content = [each for each in files if ".sqlite" not in each.name]
        wrong = [f"{len(content):,} files are left on the disk, among them {content[0]}"] if content else []
        return wrong + ([f"an empty library takes {self.disk:.0f} MiB"] if self.disk > _EMPTY else [])

    def _gone(self) -> list[str]:
        """Waits for the end of the server and of all processes of its user code; returns those that do not end."""
        process, self._process = self._running, None
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
        until = time.monotonic() + _LONGEST_END
        return [f"process {pid} outlives its server: {words}" for pid, words in self._marked() if not _ends(pid, until)]

    def _marked(self) -> Iterator[tuple[int, str]]:
        wanted = f"{_MARK}={self._mark}".encode()
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if wanted in (place / "environ").read_bytes().split(b"\0"):
                    words = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    yield int(place.name), words


def obstacle() -> str:
    """Why no power can be cut here, "" if it can."""
    return power_disk.obstacle()


def _ends(pid: int, until: float) -> bool:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return readable(handle, max(0.0, until - time.monotonic()))
    finally:
        os.close(handle)
