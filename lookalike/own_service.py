"""A service that a library starts for itself, where none runs: it ends with the library, or with this Python."""

import os
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Callable
from pathlib import Path

from pipelines.client.services import service_discovery
from pipelines.client.services.service_discovery import ServiceEndpoint
from pipelines.errors import LookalikeError

# The pipe to its standard input is closed when this Python ends, in whichever way. A session of its own keeps it from
# hearing Ctrl-C, which in a notebook or a shell is meant for what runs there.
_PROGRAM = """
import os, signal, threading
def watch():
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=watch, daemon=True).start()
from pipelines.cli import main
main()
"""
_ANNOUNCED = "lookalike serve: "

_WITHIN = 180.0
"""Seconds within which a service must answer; it loads TensorFlow, and a large index must be fetched first."""

_LOOK_EVERY = 0.1
_END_WITHIN = 10.0


class OwnService:
    """A process that serves a library on a free port of this machine."""

    def __init__(
        self, address: str, directory: Path, at: str = "", report: Callable[[str], None] = lambda _: None
    ) -> None:
        """Starts it, and waits until it answers. address, directory: the library as the command finds it, by a name or,
        for "", from a directory. at: the commit to serve, "" to follow the newest. report: takes the lines that it says
        until then. Raises LookalikeError with its reason if it does not start."""
        arguments = [sys.executable, "-c", _PROGRAM, "serve", "--port", "0", "--no-browser"]
        arguments += [*(["--address", address] if address else []), *(["--at", at] if at else [])]
        self._report = report
        self._lines: list[str] = []
        with tempfile.NamedTemporaryFile(prefix="lookalike-") as said:
            # A file, not a pipe: nobody reads what it says later.
            self._said = Path(said.name).open(encoding="utf-8", errors="replace")  # noqa: SIM115  closed by close
            self._process = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=subprocess.STDOUT,
                cwd=directory,
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "1000"},
            )
        self._end = weakref.finalize(self, _end, self._process)
        try:
            self.service = self._ready()
        except BaseException:
            self.close()
            raise
        finally:
            self._said.close()

    def close(self) -> None:
        """Ends the process."""
        self._end()

    def _ready(self) -> ServiceEndpoint:
        until = time.monotonic() + _WITHIN
        while time.monotonic() < until:
            ended = self._process.poll() is not None  # before its last lines are read
            url = self._url()
            if ended:
                reason = " ".join(self._lines) or "it ended without a word"
                raise LookalikeError(f"the service of this library did not start: {reason}")
            found = ServiceEndpoint(url, "the service of this library")
            said = service_discovery.status(found) if url else None
            if said is not None and said["state"] in ("ready", "empty"):
                return ServiceEndpoint(found.url, found.words, status=said)
            if said is not None and said["state"] == "failed":
                raise LookalikeError(str(said["message"]))
            time.sleep(_LOOK_EVERY)
        raise LookalikeError(f"the service of this library did not answer within {_WITHIN:.0f} s")

    def _url(self) -> str:
        """The address that the process has announced, "" before. Reports its other lines, each once."""
        self._said.seek(0)
        whole = [line.strip() for line in self._said if line.endswith("\n")]
        lines = [line for line in whole if line and not line.startswith(_ANNOUNCED)]
        for line in lines[len(self._lines) :]:
            self._report(line)
        self._lines = lines
        return next((line.removeprefix(_ANNOUNCED) for line in whole if line.startswith(_ANNOUNCED)), "")


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(_END_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin is not None:
        process.stdin.close()
