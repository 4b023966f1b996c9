"""Work at many hosts in many threads: some at a time at each host, and again after a while what may succeed then.

Holds a bounded number of pieces of work, however many there are. Knows nothing of what the work is.
"""

import heapq
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

THREADS = 64
AT_A_HOST = 8
WINDOW = 2048
"""Pieces of work that are held."""

TRIES = 4
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 60.0


class TryAgainError(Exception):
    """Work that may succeed later. wait: the seconds after which, None where nobody says. message: why not now."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Item, Result]):
    """What became of a piece of work. error: why there is no result, "" if there is one."""

    item: Item
    result: Result | None
    error: str = ""


class HostQueue(Generic[Item, Result]):
    """Does `work` for items as they come. host: names the host of an item. work: raises TryAgainError for what may
    succeed later, and OSError for what will not. first_wait: seconds before the second try; then twice as many."""

    def __init__(
        self,
        work: Callable[[Item], Result],
        host: Callable[[Item], str],
        at_a_host: int = AT_A_HOST,
        first_wait: float = _FIRST_WAIT,
    ) -> None:
        self._work = work
        self._host = host
        self._at_a_host = at_a_host
        self._first_wait = first_wait
        self._ready: dict[str, deque[tuple[Item, int]]] = defaultdict(deque)
        self._running: Counter[str] = Counter()
        self._later: list[tuple[float, int, Item, int]] = []
        self._done: SimpleQueue[tuple[Item, int, Result | Exception]] = SimpleQueue()
        self._held = 0
        self._number = 0

    def run(self, items: Iterator[Item]) -> Iterator[Outcome[Item, Result]]:
        """The outcomes, in the order in which they come about. Ends its threads when it is closed."""
        pool = ThreadPoolExecutor(THREADS, "fetch")
        try:
            more = True
            while more or self._held:
                while more and self._held < WINDOW:
                    item = next(items, None)
                    more = item is not None
                    if item is not None:
                        self._ready[self._host(item)].append((item, 1))
                        self._held += 1
                self._start(pool)
                if self._held and (outcome := self._next()) is not None:
                    self._held -= 1
                    yield outcome
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _start(self, pool: ThreadPoolExecutor) -> None:
        now = time.monotonic()
        while self._later and self._later[0][0] <= now:
            _, _, item, tries = heapq.heappop(self._later)
            self._ready[self._host(item)].append((item, tries))
        for host in [each for each, waiting in self._ready.items() if waiting]:
            waiting = self._ready[host]
            while waiting and self._running[host] < self._at_a_host:
                self._running[host] += 1
                pool.submit(self._do, *waiting.popleft())
            if not waiting:
                del self._ready[host]

    def _do(self, item: Item, tries: int) -> None:
        try:
            self._done.put((item, tries, self._work(item)))
        except Exception as error:
            self._done.put((item, tries, error))

    def _next(self) -> Outcome[Item, Result] | None:
        """The next outcome; None if work is to be tried again, or if it is time to start some."""
        wait = max(0.0, self._later[0][0] - time.monotonic()) if self._later else None
        try:
            item, tries, found = self._done.get(timeout=wait)
        except Empty:
            return None
        host = self._host(item)
        self._running[host] -= 1
        if not self._running[host]:
            del self._running[host]
        if isinstance(found, TryAgainError) and tries < TRIES:
            pause = self._first_wait * 2 ** (tries - 1) if found.wait is None else found.wait
            self._number += 1
            heapq.heappush(self._later, (time.monotonic() + min(pause, _LONGEST_WAIT), self._number, item, tries + 1))
            return None
        if isinstance(found, TryAgainError | OSError):
            return Outcome(item, None, str(found))
        if isinstance(found, Exception):
            raise found
        return Outcome(item, found)
