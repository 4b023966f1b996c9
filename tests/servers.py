"""Servers that tests talk to, a localpachd process each unless PACHD_ADDRESS names another. Knows no fixture."""

import contextlib
import random
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import python_pachyderm

from tests import forked_stages, forking

_FIRST_LINE = re.compile(r"localpachd: listening on (grpcs?://\S+:\d+)\n")

LATE = "--faithful"
"""The option of a localpachd that is as late as a cluster, and pytest's option that gives it to all of them."""

REGENERATE = "--regenerate"
"""pytest's option that lets tests update every pipeline of a server that they did not start."""

always: list[str] = []
"""The options of every localpachd that is started from now on."""


class OwnPort(Protocol):
    """Finds ports for servers that must be told theirs. Until the test is over the system gives them to nobody else,
    and whoever names one (with SO_REUSEADDR, as servers do) can listen there."""

    def __call__(self, among: Sequence[int] = (0,)) -> int:
        """A port, of these if not any will do."""
        ...


Unique = Callable[[str], str]
"""Makes names that nobody else on the server uses: `unique("in")` -> "in-3f2a-1"."""


@dataclass
class Pachd:
    """A server that answers at `address` (grpc://host:port)."""

    address: str

    def client(self) -> python_pachyderm.Client:
        """A new client of this server."""
        parts = urlsplit(self.address)
        return python_pachyderm.Client(host=parts.hostname, port=parts.port, tls=parts.scheme == "grpcs")


@dataclass
class Localpachd(Pachd):
    """A localpachd that the tests started."""

    process: subprocess.Popen[str]

    def stop(self) -> None:
        """Stops the server as an operator would."""
        self.process.terminate()
        try:
            self.process.wait(timeout=30)
        finally:
            self.kill()

    def kill(self) -> None:
        """Stops the server as a power cut would."""
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


class StartPachd(Protocol):
    """Starts localpachd on a root directory, with further options of its command line, and within a command."""

    def __call__(self, root: Path, *options: str, within: Sequence[str] = ()) -> Localpachd: ...


AS_PROGRAM = ("env",)
"""A command within which localpachd is started as users start it."""


def start(root: Path, *options: str, within: Sequence[str] = ()) -> Localpachd:
    """See StartPachd. The server's log is written beside the root, which is named like it. `within` is a command that
    runs another one, in surroundings of its own; without one, the server is forked."""
    log = root.with_name(root.name + ".log")
    where = ["--root", str(root)]
    if Path("/tmp") in root.parents:  # user code of tests writes beside the root
        where += ["--worker-sees", str(root.parent)]
    arguments = [*where, "--port", "0", *always, *options]
    process: subprocess.Popen[str]
    with log.open("a") as stderr:
        if within:
            command = [*within, sys.executable, "-m", "localpachd", *arguments]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)
        else:
            process = forking.start(arguments, stderr.fileno(), python=forked_stages.python())
    assert process.stdout is not None
    line = process.stdout.readline()
    match = _FIRST_LINE.fullmatch(line)
    if match is None:
        process.kill()
        process.wait()
        raise AssertionError(f"localpachd did not start: {line!r}\n{log.read_text()}")
    return Localpachd(match[1], process)


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs localpachd with these arguments until it ends by itself, forked like a server."""
    return forking.run(list(map(str, arguments)))


@contextlib.contextmanager
def own_ports() -> Iterator[OwnPort]:
    """See OwnPort."""
    with contextlib.ExitStack() as held:

        def find(among: Sequence[int] = (0,)) -> int:
            reserved = held.enter_context(socket.socket())
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            for port in random.sample(among, len(among)):
                with contextlib.suppress(OSError):
                    reserved.bind(("", port))
                    return int(reserved.getsockname()[1])
            raise AssertionError(f"none of {among} is free")

        yield find
