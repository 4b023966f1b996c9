"""Work that is done in batches: what is put together, what is lost, and what one failure does to the others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from stages.serving.answer.batcher import Batcher, QueueFullError
from tests.event_loops import run_coroutine


class Occupied:
    """A batcher that doubles numbers once it may go on, and fails for negative ones; 0 is under way. batches: what was
    computed together. asked: all askers."""

    def __init__(self, most: int, limit: int = 100, name: str = "test") -> None:
        self.batches: list[list[int]] = []
        self.sizes: list[int] = []
        self.begun = threading.Semaphore(0)
        self.gate = threading.Event()
        self.batcher = Batcher[int, int](name, self._work, most, limit, self.sizes.append)
        self.asked: list[asyncio.Task[int]] = []

    async def __aenter__(self) -> Occupied:
        self.ask("a", 0)
        await asyncio.to_thread(self.begun.acquire)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.batcher.close()

    def ask(self, key: str, number: int, weight: int = 1) -> None:
        self.asked.append(asyncio.create_task(self.batcher.ask(key, number, weight)))

    async def wait(self, count: int) -> None:
        """Waits until so many wait."""
        while len(self.batcher) < count:
            await asyncio.sleep(0)

    def _work(self, given: Sequence[int]) -> Sequence[int | Exception]:
        self.batches.append(list(given))
        self.begun.release()
        assert self.gate.wait(60)
        if any(each < 0 for each in given):
            raise ValueError("negative")
        return [2 * each for each in given]


def test_what_comes_while_a_batch_is_under_way_makes_up_the_next_one() -> None:
    async def scenario() -> None:
        async with Occupied(most=4) as work:
            for number in range(1, 7):
                work.ask("a", number)
            await work.wait(6)
            work.gate.set()
            assert await asyncio.gather(*work.asked) == [0, 2, 4, 6, 8, 10, 12]
            assert work.batches == [[0], [1, 2, 3, 4], [5, 6]]

    run_coroutine(scenario())


def test_weights_keys_and_order() -> None:
    async def scenario() -> None:
        async with Occupied(most=4) as work:
            for key, number, weight in (("a", 1, 3), ("b", 2, 1), ("a", 3, 2), ("a", 4, 1), ("b", 5, 9), ("c", 6, 9)):
                work.ask(key, number, weight)
            await work.wait(6)
            work.gate.set()
            assert await asyncio.gather(*work.asked) == [0, 2, 4, 6, 8, 10, 12]
            assert work.batches == [[0], [1, 4], [2], [3], [5], [6]]
            assert work.sizes == [1, 4, 1, 2, 9, 9]

    run_coroutine(scenario())


def test_a_failure_is_only_that_of_those_that_fail_alone() -> None:
    async def scenario() -> None:
        async with Occupied(most=10) as work:
            for number in (1, -1, 2):
                work.ask("a", number)
            await work.wait(3)
            work.gate.set()
            found = await asyncio.gather(*work.asked, return_exceptions=True)
            assert [found[0], found[1], found[3]] == [0, 2, 4]
            assert isinstance(found[2], ValueError)
            assert await work.batcher.ask("a", 5) == 10

    run_coroutine(scenario())


def test_more_than_may_wait_is_refused_and_those_that_went_away_do_not_count() -> None:
    async def scenario() -> None:
        async with Occupied(most=10, limit=3) as work:
            for number in (1, 2, 3):
                work.ask("a", number)
            await work.wait(3)
            with pytest.raises(QueueFullError):
                await work.batcher.ask("a", 4)
            work.asked[1].cancel()
            await asyncio.gather(work.asked.pop(1), return_exceptions=True)
            assert len(work.batcher) == 2
            work.ask("a", 5)
            await work.wait(3)
            work.gate.set()
            assert await asyncio.gather(*work.asked) == [0, 4, 6, 10]
            assert work.batches == [[0], [2, 3, 5]]

    run_coroutine(scenario())


def test_the_end_cancels_those_that_wait_and_the_thread_ends() -> None:
    async def scenario() -> None:
        async with Occupied(most=1, name="ending") as work:
            work.ask("a", 1)
            work.ask("a", 2)
            await work.wait(2)
            closing = asyncio.create_task(work.batcher.close())
            await asyncio.gather(*work.asked[1:], return_exceptions=True)
            work.gate.set()
            await closing
            assert await work.asked[0] == 0
            assert work.asked[1].cancelled() and work.asked[2].cancelled()
            assert work.batches == [[0]]

    run_coroutine(scenario())
    assert not [each for each in threading.enumerate() if each.name.startswith("ending")]
