"""Owns the sharing of work among a processor's cores: threads, each with one thread of BLAS. Knows no vectors.

A product in many threads, with all else in one, leaves the cores idle for as long as all else takes. NumPy lets go of
the interpreter's lock while it computes.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

Part = TypeVar("Part")
Result = TypeVar("Result")


def cores() -> int:
    """As many as BLAS would use: those of this process, or as OMP_NUM_THREADS says; 1 where that cannot be known."""
    return max((int(each["num_threads"]) for each in _libraries().select(user_api="blas").info()), default=1)


def in_threads(work: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """The work on each part, in their order. A single part has all threads of BLAS to itself."""
    if len(parts) <= 1 or cores() == 1:
        return [work(part) for part in parts]
    count = cores()
    with _libraries().limit(limits=1, user_api="blas"):
        return list(_pool(count).map(work, parts))


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


@cache
def _pool(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, "search")
