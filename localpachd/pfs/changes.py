"""Notifications of changes, by topic: whoever waits for something looks again when it may have changed, instead of
polling. Knows no topic's meaning.

A wait is written as steps: an iterator that yields a `ChangeFeed` wherever it has to wait. A server with thousands of
waits parks each until its feed has something (`ChangeFeed.park`), and no thread waits.
"""

import threading
from collections.abc import Callable, Collection, Generator, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

Topic = Hashable
"""The subject of a change. A Repo stands for commits that are made, finished or deleted in it, a Branch for its being
made, set or deleted, a Commit for what is written into it; the rooms above have topics of their own."""


@dataclass(frozen=True, slots=True)
class TopicChanges:
    """The topics in which there were changes; with `everything` there may have been some in any other, too."""

    topics: frozenset[Topic] = frozenset()
    everything: bool = False

    def __contains__(self, topic: Topic) -> bool:
        return self.everything or topic in self.topics


EVERYTHING = TopicChanges(everything=True)


class ChangeFeed:
    """The changes since the last `wait`, in some topics or, without any, in all. For one thread to wait on."""

    def __init__(self, lock: threading.Lock, topics: Collection[Topic]) -> None:
        self._condition = threading.Condition(lock)
        self._wanted = frozenset(topics)
        self._seen: set[Topic] = set()
        self._everything = False
        self._woken = False
        self._parked: Callable[[], None] | None = None

    def wait(self, timeout: float | None = None) -> TopicChanges:
        """Blocks until there is a change, a call of `ChangeNotifier.wake`, or `timeout` seconds are over. Returns the
        changes, once each: none where there are none yet."""
        with self._condition:
            self._condition.wait_for(self._has_something, timeout)
            return self._taken()

    def park(self, resume: Callable[[], None]) -> bool:
        """In place of `wait`: lets `resume` be called, once, when `wait` would return, and returns True; returns False
        if it would return at once. `resume` is called while changes are told, so it must leave its work to others; the
        changes themselves are dropped."""
        with self._condition:
            if self._has_something():
                self._taken()
                return False
            self._parked = resume
            return True

    def rouse(self) -> None:
        """As `wake`, for those who do not hold the lock."""
        with self._condition:
            self.wake()

    def _has_something(self) -> bool:
        return self._woken or self._everything or bool(self._seen)

    def _taken(self) -> TopicChanges:
        changed = TopicChanges(frozenset(self._seen), self._everything)
        self._seen.clear()
        self._everything = self._woken = False
        return changed

    def _notify(self) -> None:
        self._condition.notify()
        resume, self._parked = self._parked, None
        if resume is not None:
            self._taken()
            resume()

    def tell(self, topics: Collection[Topic]) -> None:
        """Adds changes, without topics in everything. The caller holds the lock."""
        if not topics:
            self._everything = True
        elif not self._wanted:
            self._seen.update(topics)
        else:
            self._seen.update(self._wanted.intersection(topics))
        if self._everything or self._seen:
            self._notify()

    def wake(self) -> None:
        """Lets `wait` return although nothing has changed. The caller holds the lock."""
        self._woken = True
        self._notify()


Steps = Iterator[T | ChangeFeed]
"""Results as they come, with a ChangeFeed wherever the next one has to be waited for."""


class ChangeNotifier:
    """Tells of each change all who wait for one like it. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._feeds: set[ChangeFeed] = set()

    def notify(self, topics: Collection[Topic] = ()) -> None:
        """Tells of a change in these topics; without any, everything may have changed. Call it when others can see the
        change: after the transaction, not in it."""
        with self._lock:
            for feed in self._feeds:
                feed.tell(topics)

    def wake(self) -> None:
        """Lets everybody who waits ask whether to wait on. Nothing has changed."""
        with self._lock:
            for feed in self._feeds:
                feed.wake()

    @contextmanager
    def feed(self, *topics: Topic) -> Iterator[ChangeFeed]:
        """The changes from now on in these topics or, without any, in all."""
        feed = ChangeFeed(self._lock, topics)
        with self._lock:
            self._feeds.add(feed)
        try:
            yield feed
        finally:
            with self._lock:
                self._feeds.remove(feed)

    def wait_for(
        self, look: Callable[[], T | None], active: Callable[[], bool] = lambda: True, topics: Collection[Topic] = ()
    ) -> T | None:
        """Returns the first result of `look` that is not None, looking again after every change in the topics, without
        any after every change; None once `active` is false. To end a wait from outside, make `active` false first and
        then call `wake`."""
        steps = self.until(look, active, topics)
        while True:
            try:
                next(steps).wait()
            except StopIteration as end:
                found: T | None = end.value
                return found

    def until(
        self, look: Callable[[], T | None], active: Callable[[], bool] = lambda: True, topics: Collection[Topic] = ()
    ) -> Generator[ChangeFeed, None, T | None]:
        """As `wait_for`, in steps: for `yield from`, whose value is the result."""
        with self.feed(*topics) as feed:
            while active():
                result = look()
                if result is not None:
                    return result
                yield feed
        return None
