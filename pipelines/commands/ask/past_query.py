"""The part of the command `query` that asks the library of an earlier commit."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pipelines.analysis.time_travel import past_library, past_search
from pipelines.analysis.time_travel.past_search import PastAnswers, StepDisplay
from pipelines.client.commit_sets import commit_at
from pipelines.client.server.connection import Connection
from pipelines.commands.kit import interrupts, progress
from pipelines.commands.kit.estimates import time_left
from pipelines.commands.kit.terminal import console, say

_TELL_EVERY = 30.0
"""Seconds between two lines about a step where there is no terminal."""


def ask(
    connection: Connection, at: str, paths: Sequence[Path], to: Path, k: int | None, todays_code: bool
) -> PastAnswers:
    """Asks the library at the commit set that `at` means."""
    interrupts.explain("interrupted: nothing was written")
    commit = past_library.answering_commit(connection, connection.retry(commit_at, connection, at))
    say(f"asking the library of commit {commit}; nothing is written to the server")
    return past_search.ask(connection, commit, paths, to, STEPS, k, todays_code)


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
