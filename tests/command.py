"""`lookalike` as tests type it: within their own process or, where that is what counts, in one of its own.

Knows how a command starts and ends, and nothing of what the commands do.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest import mock

from typer.testing import CliRunner

from pipelines import cli


@dataclass(frozen=True)
class Typed:
    """What became of one command: its exit status and what it printed."""

    returncode: int
    stdout: str
    stderr: str


@dataclass
class Command:
    """Types `lookalike` in a directory. `environment` comes on top of the tests' own, at the time of each command."""

    directory: Path
    environment: dict[str, str] = field(default_factory=dict)
    spawns: bool = False

    @property
    def as_process(self) -> "Command":
        """The same, but every command is a process: for signals, terminals, encodings, and the module as it is run."""
        return replace(self, spawns=True)

    def run(self, *arguments: str | Path) -> Typed:
        """Types a command, which may end in any way but with a traceback."""
        words = list(map(str, arguments))
        done = self._spawned(words) if self.spawns else _called(words, self.directory, self.environment)
        assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
        return done

    def start(
        self,
        *arguments: str | Path,
        stdin: int | None = None,
        stdout: int | None = subprocess.PIPE,
        stderr: int | None = subprocess.PIPE,
    ) -> subprocess.Popen[str]:
        """A process that is left running."""
        command = [sys.executable, "-u", "-P", "-m", "pipelines.cli", *map(str, arguments)]
        return subprocess.Popen(
            command,
            cwd=self.directory,
            env={**os.environ, **self.environment},
            encoding="utf-8",
            # A shell starts these tests in the background with Ctrl-C ignored, which processes inherit.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
        )

    def says(self, *arguments: str | Path) -> str:
        """What it prints when all goes well."""
        done = self.run(*arguments)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def fails(self, *arguments: str | Path) -> str:
        """The one line on stderr when it does not."""
        done = self.run(*arguments)
        assert done.returncode == 1, done
        (line,) = done.stderr.splitlines()
        assert line.startswith("lookalike: ")
        return line.removeprefix("lookalike: ")

    def _spawned(self, words: list[str]) -> Typed:
        process = self.start(*words)
        try:
            said, complained = process.communicate(timeout=60)
        finally:
            process.kill()
        return Typed(process.wait(), said, complained)


def _called(words: list[str], directory: Path, environment: Mapping[str, str]) -> Typed:
    returncode = 0
    with (
        contextlib.chdir(directory),
        mock.patch.object(sys, "argv", ["lookalike", *words]),
        _interrupts_kept(),
        CliRunner().isolation(env=environment) as (said, complained, _),
    ):
        try:
            cli.main()
        except SystemExit as ended:
            returncode = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        texts = [stream.getvalue().decode() for stream in (said, complained)]
    return Typed(returncode, *texts)


@contextlib.contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Puts back what becomes of Ctrl-C: the command has its own way, for as long as its process lives."""
    handler, hook = signal.getsignal(signal.SIGINT), sys.unraisablehook
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        sys.unraisablehook = hook
