"""Progress within a datum: a line in the log now and then, such as "120 of 400 pictures". `lookalike` reads it there.

Only the standard library. Changes no output.
"""

from __future__ import annotations

import time

EVERY = 2.0
"""Seconds between two lines; a datum that takes less has none."""


class Progress:
    """Counts towards `total`, None if that is not known."""

    def __init__(self, unit: str, total: int | None = None, every: float = EVERY) -> None:
        """unit: what is counted, in the plural and in one word. every: seconds between two lines."""
        self._unit = unit
        self._total = total
        self._every = every
        self._done = 0
        self._due = time.monotonic() + every

    def add(self, more: int = 1) -> None:
        """Counts more, and prints a line if one is due."""
        self._done += more
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + self._every
        known = self._total is not None and self._done <= self._total
        print(f"  {self._done} of {self._total} {self._unit}" if known else f"  {self._done} {self._unit} so far")
