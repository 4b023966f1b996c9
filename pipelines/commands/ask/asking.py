"""The part of the command `query` that asks the library of an earlier commit."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pipelines.client.moments import commit_at
from pipelines.client.server.connection import Connection
from pipelines.client.server.outages import outlasting
from pipelines.commands.kit import interrupts, progress
from pipelines.commands.kit.estimates import about
from pipelines.commands.kit.terminal import console, say
from pipelines.explaining.timetravel import asking, past
from pipelines.explaining.timetravel.asking import Answered, Steps

_TELL_EVERY = 30.0
"""Seconds between two lines about a step where there is no terminal."""


def ask(connection: Connection, at: str, paths: Sequence[Path], to: Path, k: int | None, todays_code: bool) -> Answered:
    """Asks the library at the commit set that `at` means."""
    interrupts.explain("interrupted; nothing was written")
    commit = past.answering(connection, outlasting(connection, partial(commit_at, connection, at)))
    say(f"asking the library of commit {commit}; nothing is written to the server")
    return asking.ask(connection, commit, paths, to, STEPS, k, todays_code)


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
                say(f"{what}: {done:,} of {total:,}, {about((now - began) * (total - done) / done)}")

        yield count


STEPS = Steps(_counting, progress.transferring, say)
