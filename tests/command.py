"""`lookalike` as tests type it: in the tests' own process or, where that matters, in a separate one.

Knows how a command starts and ends, and nothing of the commands themselves.
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
from pipelines.commands.kit.terminal import console
from tests import forked_command, forked_stages
from tests.forking import Forked

COLUMNS = 120

# Not in subprocess's preexec_fn: a fork in which Python runs can abort while gRPC is busy in this process.
HEED_INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
"""The first line of a program that reacts to Ctrl-C even if its parent ignores it."""

_RUN = "import runpy; runpy.run_module('pipelines.cli', run_name='__main__', alter_sys=True)"


@dataclass(frozen=True)
class CommandResult:
    """The result of one command: its exit status and its output."""

    returncode: int
    stdout: str
    stderr: str


@dataclass
class Command:
    """Types `lookalike` in a directory, on a terminal of 120 columns. `environment` extends the tests' own."""

    directory: Path
    environment: dict[str, str] = field(default_factory=dict)
    spawns: bool = False

    @property
    def as_process(self) -> "Command":
        """The same, but each command is a Python of its own: for tests of interrupts, encodings, and `python -m`."""
        return replace(self, spawns=True)

    def run(self, *arguments: str | Path) -> CommandResult:
        """Types a command, which may end in any way except with a traceback."""
        words = list(map(str, arguments))
        done = self._spawned(words) if self.spawns else _called(words, self.directory, self._added)
        assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
        return done

    def start(
        self,
        *arguments: str | Path,
        stdin: int | None = None,
        stdout: int | None = subprocess.PIPE,
        stderr: int | None = subprocess.PIPE,
        interruptible: bool = False,
    ) -> subprocess.Popen[str]:
        """Starts a process and leaves it running. `interruptible` makes it react to Ctrl-C even if the tests ignore it,
        as they do when a shell has started them in the background. It is forked from one that has imported all but our
        own modules, unless the command is `as_process`."""
        variables = {**os.environ, **self._added}
        streams = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
        if not self.spawns:
            heeds = {forked_command.INTERRUPTIBLE: "1"} if interruptible else {}
            program = forked_command.__name__
            environment = {**variables, **heeds}
            return Forked(
                [*map(str, arguments)], program, forked_stages.python(), cwd=self.directory, env=environment, **streams
            )
        module = ["-c", f"{HEED_INTERRUPTS}\n{_RUN}"] if interruptible else ["-m", "pipelines.cli"]
        return subprocess.Popen(
            [sys.executable, "-u", "-P", *module, *map(str, arguments)],
            cwd=self.directory,
            env=variables,
            encoding="utf-8",
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
        )

    def says(self, *arguments: str | Path) -> str:
        """The output of a command that succeeds without messages on stderr."""
        done = self.run(*arguments)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def fails(self, *arguments: str | Path) -> str:
        """The single line on stderr of a command that fails."""
        done = self.run(*arguments)
        assert done.returncode == 1, done
        (line,) = done.stderr.splitlines()
        assert line.startswith("lookalike: ")
        return line.removeprefix("lookalike: ")

    @property
    def _added(self) -> dict[str, str]:
        return {"COLUMNS": str(COLUMNS), **self.environment}

    def _spawned(self, words: list[str]) -> CommandResult:
        process = self.start(*words)
        try:
            said, complained = process.communicate(timeout=60)
        finally:
            process.kill()
        return CommandResult(process.wait(), said, complained)


def next_line(process: subprocess.Popen[str], part: str) -> str:
    """The next line of a process that has this part, as soon as it is there."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if part in line:
            return line.rstrip("\n")
    raise AssertionError(f"no {part!r} in {lines}, {process.communicate()}")


def _called(words: list[str], directory: Path, environment: Mapping[str, str]) -> CommandResult:
    returncode = 0
    with (
        contextlib.chdir(directory),
        mock.patch.object(sys, "argv", ["lookalike", *words]),
        terminal_of(COLUMNS),
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
    return CommandResult(returncode, *texts)


@contextlib.contextmanager
def terminal_of(columns: int) -> Iterator[None]:
    """Sets the width of the terminal for commands in this process, where rich has read COLUMNS already. And output goes
    to stdout at first, even if an earlier `--json` has moved it."""
    before = console.width
    console.width, console.stderr = columns, False
    try:
        yield
    finally:
        console.width = before


@contextlib.contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Restores the handling of Ctrl-C, which the command changes for the rest of its process."""
    handler, hooks = signal.getsignal(signal.SIGINT), (sys.excepthook, sys.unraisablehook)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        sys.excepthook, sys.unraisablehook = hooks
