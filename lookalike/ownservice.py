"""A service that a library starts for itself, where none runs: it ends with the library, or with this Python."""

import os
import subprocess
import sys
import time
import weakref
from collections.abc import Callable

from pipelines.client import services
from pipelines.client.connection import Connection
from pipelines.client.services import Service
from pipelines.errors import LookalikeError

_PROGRAM = "from pipelines.cli import main; main()"
_ANNOUNCED = "lookalike serve: "

_WITHIN = 180.0
"""Seconds within which a service must answer; it loads TensorFlow, and a large index must be fetched first."""

_LOOK_EVERY = 0.1
_END_WITHIN = 10.0


class OwnService:
    """A process that serves a library on a free port of this machine."""

    def __init__(self, connection: Connection, at: str = "", report: Callable[[str], None] = lambda _: None) -> None:
        """Starts it, and waits until it answers. at: the commit to serve, "" to follow the newest. report: takes the
        lines that it says. Raises LookalikeError with its reason if it does not start."""
        arguments = [sys.executable, "-c", _PROGRAM, "serve", "--port", "0", "--no-browser"]
        arguments += ["--address", connection.address] + (["--at", at] if at else [])
        self._process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "1000"},
        )
        self._end = weakref.finalize(self, _end, self._process)
        try:
            self.service = self._ready(report)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the process."""
        self._end()

    def _ready(self, report: Callable[[str], None]) -> Service:
        found = Service(self._url(report), "the service of this library")
        until = time.monotonic() + _WITHIN
        while time.monotonic() < until:
            said = services.status(found)
            if said is not None and said["state"] in ("ready", "empty"):
                return Service(found.url, found.words, status=said)
            if said is not None and said["state"] == "failed":
                raise LookalikeError(str(said["message"]))
            if self._process.poll() is not None:
                raise LookalikeError("the service of this library has ended: `lookalike serve` tells why")
            time.sleep(_LOOK_EVERY)
        raise LookalikeError(f"the service of this library did not answer within {_WITHIN:.0f} s")

    def _url(self, report: Callable[[str], None]) -> str:
        """The address that the process announces."""
        lines: list[str] = []
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(_ANNOUNCED):
                return line.removeprefix(_ANNOUNCED).strip()
            lines.append(line.strip())
            report(lines[-1])
        reason = " ".join(filter(None, lines)) or "it ended without a word"
        raise LookalikeError(f"the service of this library did not start: {reason}")


def _end(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    try:
        process.wait(_END_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
