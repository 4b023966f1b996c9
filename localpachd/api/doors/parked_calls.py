"""Calls that wait: each is parked until there may be something for it, so that no thread waits. Knows no call by name.

gRPC's handlers keep their thread until a call ends, except those that say that they do not block (`experimental_non_
blocking`, as gRPC's own service of health does): these get a function to send replies with, at any time. On the wire a
call with one reply and a stream of one reply are the same, so both kinds of calls can wait like this.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from localpachd import errors
from localpachd.api.calls.cancellation import CallContext
from localpachd.api.doors import status
from localpachd.api.pachyderm_version import V2_7, PachydermVersion
from localpachd.pfs.changes import ChangeFeed

_LOOKING = 48
"""Threads for each kind of call that look whether there is something for those that wait, and send it. One kind cannot
use up those of another."""

_CROWDED = 24
"""Replies of one kind that clients do not take from which on they soon lose their calls: others of the kind need the
threads."""

LIMIT = 2000
"""Calls of one kind that may wait at once."""

_log = logging.getLogger(__name__)

ReplySender = Callable[[Any], None]
"""Sends a reply, or with None ends the call."""


class ParkedCalls:
    """The waiting calls of one server. Thread-safe. Implements `handlers.BehaviourFactory`. `end_idle`, to be called
    now and then, ends those whose clients have not taken a reply for `idle` seconds, or `crowded` seconds where many do
    not, since a reply that is being sent holds a thread. `version`: as which the server answers."""

    def __init__(self, idle: float, crowded: float, version: PachydermVersion = V2_7) -> None:
        self.version = version
        self._idle = idle
        self._when_crowded = crowded
        self._sending: dict[CallContext, tuple[str, float]] = {}
        self._pools: dict[str, ThreadPoolExecutor] = {}
        self._lock = threading.Lock()
        self._waiting: Counter[str] = Counter()

    def behaviour(
        self, method: str, steps: Callable[[Any, CallContext], Iterator[Any]]
    ) -> Callable[[Any, CallContext, ReplySender], None]:
        """The handler of a stream of replies for a method that is written in steps (see `pfs.changes.Steps`)."""

        def begin(request: Any, context: CallContext, send: ReplySender) -> None:
            _Call(method, steps(request, context), context, send, self).run()

        begin.experimental_non_blocking = True  # type: ignore[attr-defined]
        begin.experimental_thread_pool = self._pool(method)  # type: ignore[attr-defined]
        return begin

    def enter(self, method: str) -> None:
        """Counts a call that begins to wait. Raises TooMany past the limit."""
        with self._lock:
            if self._waiting[method] >= LIMIT:
                raise errors.TooMany(f"{LIMIT} calls of {method} are waiting: end some, or try again later")
            self._waiting[method] += 1

    def leave(self, method: str) -> None:
        """Ends what `enter` began."""
        with self._lock:
            self._waiting[method] -= 1

    def waiting(self) -> Mapping[str, int]:
        """The number of calls that wait, by method."""
        with self._lock:
            return {method: count for method, count in self._waiting.items() if count}

    def sent(self, method: str, context: CallContext, send: ReplySender, reply: Any) -> None:
        self._sending[context] = method, time.monotonic()
        try:
            send(reply)
        finally:
            del self._sending[context]

    def end_idle(self) -> int:
        """Ends calls whose clients do not read; returns how many."""
        now, sending = time.monotonic(), self._sending.copy()
        unread = Counter(method for method, since in sending.values() if since < now - self._when_crowded)
        ended = 0
        for context, (method, since) in sending.items():
            idle = self._when_crowded if unread[method] >= _CROWDED else self._idle
            if since < now - idle:
                _log.warning("ending %s: its client has read nothing for %.0f s", method, idle)
                context.cancel()
                ended += 1
        return ended

    def resume(self, method: str, call: Callable[[], None]) -> None:
        """Lets a thread continue with a call."""
        try:
            self._pool(method).submit(call)
        except RuntimeError:  # the server has stopped, and all of its calls with it
            return

    def close(self) -> None:
        """Ends the threads; call it when the server has stopped."""
        for pool in self._pools.values():
            pool.shutdown(wait=True)

    def _pool(self, method: str) -> ThreadPoolExecutor:
        """Sidecars serve the same methods with the same threads."""
        with self._lock:
            if method not in self._pools:
                name = f"wait-{method.rpartition('/')[2]}"
                self._pools[method] = ThreadPoolExecutor(_LOOKING, thread_name_prefix=name)
            return self._pools[method]


class _Call:
    """One call. At most one thread at a time is in `run`: the next comes when the one before has parked it."""

    def __init__(
        self, method: str, steps: Iterator[Any], context: CallContext, send: ReplySender, parking: ParkedCalls
    ) -> None:
        self._method = method
        self._steps = steps
        self._context = context
        self._send = send
        self._parking = parking
        self._counted = False
        self._feed: ChangeFeed | None = None

    def run(self) -> None:
        """Takes steps until the call has to wait or is over."""
        try:
            for step in self._steps:
                if not isinstance(step, ChangeFeed):
                    self._parking.sent(self._method, self._context, self._send, step)
                    if not self._context.is_active():
                        break  # its client has gone: nobody wants the rest
                elif self._park(step):
                    return
        except Exception as error:
            status.conclude(self._context, error, self._method, self._parking.version)
        if isinstance(self._steps, Generator):
            self._steps.close()  # here, and not wherever it is collected, which may be a thread that tells of changes
        if self._counted:
            self._parking.leave(self._method)
        self._send(None)

    def _park(self, feed: ChangeFeed) -> bool:
        """Whether the call waits for the feed from now on. `run` may already be continuing elsewhere then."""
        watched = self._counted
        if not watched:
            self._parking.enter(self._method)
            self._counted = True
        self._feed = feed
        if not watched and not self._context.add_callback(self._gone):
            return False
        # After the feed is known to the callback: a call that ends from now on rouses it.
        return self._context.is_active() and feed.park(lambda: self._parking.resume(self._method, self.run))

    def _gone(self) -> None:
        if self._feed is not None:
            self._feed.rouse()
