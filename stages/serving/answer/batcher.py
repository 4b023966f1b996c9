"""Work that is cheaper together: requests that come while a batch is under way make up the next one.

One thread for each kind of work. Knows neither pictures nor HTTP.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

_InputT = TypeVar("_InputT")
_OutputT = TypeVar("_OutputT")


class QueueFullError(Exception):
    """As much waits as may wait."""


@dataclass(eq=False)
class _Waiting(Generic[_InputT, _OutputT]):
    key: Hashable
    weight: int
    given: _InputT
    done: asyncio.Future[_OutputT]


class Batcher(Generic[_InputT, _OutputT]):
    """Runs `work` on batches of what is asked for, in the order of the asking. Belongs to one event loop."""

    def __init__(
        self,
        name: str,
        work: Callable[[Sequence[_InputT]], Sequence[_OutputT | Exception]],
        most: int,
        waiting: int,
        observe: Callable[[int], None] = lambda _: None,
    ) -> None:
        """work: gives, in another thread, an outcome for each; of one batch all have the same key. most: the weight of
        a batch, unless one alone has more. waiting: how many may wait. observe: hears of each batch's weight."""
        self._work = work
        self._most = most
        self._limit = waiting
        self._observe = observe
        self._queue: deque[_Waiting[_InputT, _OutputT]] = deque()
        self._thread = ThreadPoolExecutor(1, name)
        self._running: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """How many wait."""
        return len(self._queue)

    async def ask(self, key: Hashable, given: _InputT, weight: int = 1) -> _OutputT:
        """The outcome of one. A cancelled asker is dropped from the queue. Raises QueueFullError, and what the work
        raised."""
        if len(self._queue) >= self._limit:
            raise QueueFullError
        waiting = _Waiting[_InputT, _OutputT](key, weight, given, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())
        try:
            return await waiting.done
        finally:
            if waiting.done.cancelled() and waiting in self._queue:
                self._queue.remove(waiting)

    async def close(self) -> None:
        """Ends the thread, once its batch is done; all that wait are cancelled."""
        for each in self._queue:
            each.done.cancel()
        if self._running is not None:
            await self._running
        self._thread.shutdown()

    async def _run(self) -> None:
        while batch := self._next():
            self._observe(sum(each.weight for each in batch))
            for each, outcome in zip(batch, await self._outcomes(batch), strict=True):
                if each.done.done():
                    continue
                if isinstance(outcome, Exception):
                    each.done.set_exception(outcome)
                else:
                    each.done.set_result(outcome)

    async def _outcomes(self, batch: Sequence[_Waiting[_InputT, _OutputT]]) -> Sequence[_OutputT | Exception]:
        """Those of a batch. One that fails is tried again one by one: only those that fail alone do fail."""
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._thread, self._work, [each.given for each in batch]
            )
        except Exception as error:
            if len(batch) == 1:
                return [error]
            return [outcome for each in batch for outcome in await self._outcomes([each])]

    def _next(self) -> list[_Waiting[_InputT, _OutputT]]:
        """The first that wait, and those of the same key, up to a full batch; the others keep their places."""
        batch: list[_Waiting[_InputT, _OutputT]] = []
        kept: deque[_Waiting[_InputT, _OutputT]] = deque()
        weight = 0
        while self._queue:
            each = self._queue.popleft()
            if each.done.done():  # nobody waits for it any more
                continue
            if not batch or (each.key == batch[0].key and weight + each.weight <= self._most):
                batch.append(each)
                weight += each.weight
            else:
                kept.append(each)
        self._queue = kept
        return batch
