"""The steps of a question to the library of an earlier commit, as they are shown."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pipelines.analysis.time_travel.stage_workbench import StepDisplay
from pipelines.commands.kit import interrupts, progress
from pipelines.commands.kit.estimates import time_left
from pipelines.commands.kit.terminal import console, say

_TELL_EVERY = 30.0
"""Seconds between two lines about a step where there is no terminal."""


@contextmanager
def _counting(what: str, total: int) -> Iterator[Callable[[int], None]]:
    began = told = time.monotonic()
    done = 0
    with progress.counting(what, total) as report:

        def count(more: int) -> None:
            nonlocal done, told
            interrupts.check()
            report(more)
            done += more
            now = time.monotonic()
            if not console.is_terminal and 0 < done < total and now - told >= _TELL_EVERY:
                told = now
                say(f"{what}: {done:,} of {total:,}, {time_left((now - began) * (total - done) / done)}")

        yield count


STEPS = StepDisplay(_counting, progress.transferring, say)
