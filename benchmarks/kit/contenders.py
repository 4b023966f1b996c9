"""Contenders, each in a process of its own with its own kernels and its own peak memory: both ends of the pipe between
them. Knows nothing of their work."""

import math
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from benchmarks.kit.report import interleaved, timed
from benchmarks.kit.trees import status_mib

_ROOT = Path(__file__).resolve().parents[2]
_REPORT_EVERY = 30.0
"""Seconds between two lines on a slow contender."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Taken:
    """The cost of a contender: the seconds until it was open (process started, libraries and input loaded), those of
    its first run and of its best run after that; its peak memory in MiB; and the least processor seconds of a run, of
    all its threads, which other work on the machine changes less."""

    opening: float
    first: float
    seconds: float
    peak_mib: float
    processor: float


class Contender:
    """A process that repeats one piece of work: `python -m MODULE NAME DIRECTORY`, which calls `serve`.

    Used in a `with` statement. Every call raises RuntimeError with the reason if the process has ended.
    """

    def __init__(self, module: str, name: str, directory: Path, environment: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.opening = 0.0
        self.processor = 0.0
        """The processor seconds of the last run, of all its threads."""
        self.least_processor = math.inf
        """Those of the run that took the least."""
        self._command = [sys.executable, "-m", module, name, str(directory)]
        self._environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **(environment or {})}
        self._complaints = directory / f"{name}.err"

    def __enter__(self) -> "Contender":
        with self._complaints.open("w") as complaints:
            self._process = subprocess.Popen(
                self._command,
                cwd=_ROOT,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
            )
        try:
            self.opening = timed(self._said)
        except RuntimeError:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()

    def seconds(self) -> float:
        """Runs the work once; returns its seconds, and keeps the processor seconds."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        seconds, self.processor = map(float, self._said().split())
        self.least_processor = min(self.least_processor, self.processor)
        return seconds

    def finish(self) -> float:
        """Has it write its answers; returns its peak memory in MiB."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.stdin = None  # communicate must not flush it
        return round(float(self._said()), 1)

    def _said(self) -> str:
        answers = self._process.stdout
        assert answers is not None
        while not select.select([answers], [], [], _REPORT_EVERY)[0]:
            print(f"  {self.name}: {self._last_complaint() or 'still running'}", file=sys.stderr, flush=True)
        said = answers.readline().strip()
        if not said:
            self._process.wait()
            raise RuntimeError(f"{self.name} does not run here: {self._last_complaint() or 'it has ended'}")
        return said

    def _last_complaint(self) -> str:
        said = self._complaints.read_text(errors="replace").split("\n")
        return next((line.strip() for line in reversed(said) if line.strip()), "")


def race(
    module: str,
    directory: Path,
    names: Sequence[str],
    rounds: int,
    environments: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, Taken]:
    """Opens and warms these contenders one after the other, then runs them in turns for several rounds.

    environments: further variables of some of them, by name. Raises RuntimeError if one does not run.
    """
    with ExitStack() as stack:
        running, firsts = [], []
        for name in names:
            own = (environments or {}).get(name)
            running.append(stack.enter_context(Contender(module, name, directory, own)))
            firsts.append(running[-1].seconds())
            print(f"  {name}: {firsts[-1]:.1f} s the first time", file=sys.stderr, flush=True)
        best = interleaved(rounds, *(each.seconds for each in running))
        return {
            each.name: Taken(each.opening, first, seconds, each.finish(), each.least_processor)
            for each, first, seconds in zip(running, firsts, best, strict=True)
        }


def serve(opened: Callable[[], Callable[[], T]], keep: Callable[[T], None] = lambda _: None) -> None:
    """The other end of the pipe. Opens the work; runs it for each line on standard input and answers with the seconds
    and the processor seconds; at the end of the input keeps the last result and answers with the peak memory in MiB."""
    answers = sys.stdout
    with redirect_stdout(sys.stderr):  # the output of libraries must not be taken for an answer
        work = opened()
        print("ready", file=answers, flush=True)
        found: list[T] = []
        for _ in sys.stdin:
            begun, used = time.perf_counter(), time.process_time()
            found[:] = [work()]
            print(time.perf_counter() - begun, time.process_time() - used, file=answers, flush=True)
        for each in found:
            keep(each)
        print(status_mib("self", "VmHWM"), file=answers, flush=True)
