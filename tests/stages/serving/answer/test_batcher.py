"""Work that is done in batches: what is put together, what is lost, and what one failure does to the others."""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from stages.serving.answer.batcher import Batcher, QueueFullError


class Work:
    """Doubles numbers once it may go on; fails for negative ones. batches: what it was given."""

    def __init__(self, open: bool = True) -> None:
        self.batches: list[list[int]] = []
        self.begun = threading.Semaphore(0)
        self.gate = threading.Event()
        if open:
            self.gate.set()

    def __call__(self, given: Sequence[int]) -> Sequence[int | Exception]:
        self.batches.append(list(given))
        self.begun.release()
        assert self.gate.wait(60)
        if any(each < 0 for each in given):
            raise ValueError("negative")
        return [2 * each for each in given]

    async def under_way(self) -> None:
        await asyncio.to_thread(self.begun.acquire)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """Runs to the end, in a thread: tests in a browser leave a loop behind in the main one."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, scenario).result()


async def waiting(batcher: Batcher[int, int], count: int) -> None:
    while len(batcher) < count:
        await asyncio.sleep(0)


def test_what_comes_while_a_batch_is_under_way_makes_up_the_next_one() -> None:
    async def scenario() -> None:
        work = Work(open=False)
        batcher = Batcher[int, int]("test", work, most=4, waiting=100)
        asked = [asyncio.create_task(batcher.ask("key", 0))]
        await work.under_way()
        asked += [asyncio.create_task(batcher.ask("key", number)) for number in range(1, 7)]
        await waiting(batcher, 6)
        work.gate.set()
        assert await asyncio.gather(*asked) == [0, 2, 4, 6, 8, 10, 12]
        assert work.batches == [[0], [1, 2, 3, 4], [5, 6]]
        await batcher.close()

    run(scenario())


def test_weights_keys_and_order() -> None:
    async def scenario() -> None:
        work = Work(open=False)
        sizes: list[int] = []
        batcher = Batcher[int, int]("test", work, most=4, waiting=100, observe=sizes.append)
        asked = [asyncio.create_task(batcher.ask("a", 0))]
        await work.under_way()
        for key, number, weight in (("a", 1, 3), ("b", 2, 1), ("a", 3, 2), ("a", 4, 1), ("b", 5, 9), ("c", 6, 9)):
            asked.append(asyncio.create_task(batcher.ask(key, number, weight)))
        await waiting(batcher, 6)
        work.gate.set()
        assert await asyncio.gather(*asked) == [0, 2, 4, 6, 8, 10, 12]
        assert work.batches == [[0], [1, 4], [2], [3], [5], [6]]
        assert sizes == [1, 4, 1, 2, 9, 9]
        await batcher.close()

    run(scenario())


def test_a_failure_is_only_that_of_those_that_fail_alone() -> None:
    async def scenario() -> None:
        work = Work(open=False)
        batcher = Batcher[int, int]("test", work, most=10, waiting=100)
        asked = [asyncio.create_task(batcher.ask("key", 0))]
        await work.under_way()
        asked += [asyncio.create_task(batcher.ask("key", number)) for number in (1, -1, 2)]
        await waiting(batcher, 3)
        work.gate.set()
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert [found[0], found[1], found[3]] == [0, 2, 4]
        assert isinstance(found[2], ValueError)
        assert await batcher.ask("key", 5) == 10
        await batcher.close()

    run(scenario())


def test_more_than_may_wait_is_refused_and_those_that_went_away_do_not_count() -> None:
    async def scenario() -> None:
        work = Work(open=False)
        batcher = Batcher[int, int]("test", work, most=10, waiting=3)
        asked = [asyncio.create_task(batcher.ask("key", 0))]
        await work.under_way()
        asked += [asyncio.create_task(batcher.ask("key", number)) for number in (1, 2, 3)]
        await waiting(batcher, 3)
        with pytest.raises(QueueFullError):
            await batcher.ask("key", 4)
        asked[1].cancel()
        await asyncio.gather(asked[1], return_exceptions=True)
        assert len(batcher) == 2
        asked.append(asyncio.create_task(batcher.ask("key", 5)))
        await waiting(batcher, 3)
        work.gate.set()
        assert [await each for each in (asked[0], *asked[2:])] == [0, 4, 6, 10]
        assert work.batches == [[0], [2, 3, 5]]
        await batcher.close()

    run(scenario())


def test_the_end_cancels_those_that_wait_and_the_thread_ends() -> None:
    async def scenario() -> None:
        work = Work(open=False)
        batcher = Batcher[int, int]("ending", work, most=1, waiting=10)
        asked = [asyncio.create_task(batcher.ask("key", number)) for number in range(3)]
        await work.under_way()
        closing = asyncio.create_task(batcher.close())
        await asyncio.gather(*asked[1:], return_exceptions=True)
        work.gate.set()
        await closing
        assert await asked[0] == 0
        assert asked[1].cancelled() and asked[2].cancelled()
        assert work.batches == [[0]]

    run(scenario())
    assert not [each for each in threading.enumerate() if each.name.startswith("ending")]
