"""The pace of the server's own work: at once, or as late as on a cluster. Knows nothing of the work."""

import random
import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

H = TypeVar("H", bound=Hashable)

_SEED = 0
"""Delays are random but the same in each run: a failure comes back."""


class RandomDelays:
    """A random delay of at most `longest` seconds for each subject, from the moment it is first seen. For one
    thread. `clock` is in seconds."""

    def __init__(self, longest: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._longest = longest
        self._clock = clock
        self._random = random.Random(_SEED)
        self._ends: dict[Hashable, float] = {}

    def over(self, subjects: Iterable[H]) -> tuple[list[H], float | None]:
        """The subjects whose delay is over, in their order, and the seconds until the next delay is over, None if all
        are. Subjects that are not among them are forgotten."""
        found = list(subjects)
        now = self._clock()
        self._ends = {
            each: self._ends[each] if each in self._ends else now + self._random.uniform(0, self._longest)
            for each in found
        }
        left = [end - now for end in self._ends.values() if end > now]
        return [each for each in found if self._ends[each] <= now], min(left, default=None)


@dataclass(frozen=True, slots=True)
class Pace:
    """Whether commits, jobs and pipelines take their steps at once, with `longest` 0, or late: each step after a random
    delay of at most `longest` seconds, and results of datums when their set ends."""

    longest: float = 0.0

    @property
    def late(self) -> bool:
        """Whether steps take time."""
        return self.longest > 0

    def delays(self) -> RandomDelays:
        """The delays of one kind of step."""
        return RandomDelays(self.longest)


AT_ONCE = Pace()
