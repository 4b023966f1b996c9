"""Owns the sharing of work among a processor's cores: threads, each with one thread of BLAS. Knows no vectors.

A product in many threads, with all else in one, leaves the cores idle for as long as all else takes. While it
multiplies NumPy lets go of the interpreter's lock; in much of the rest it does not, and two threads that fight for it
take longer than one after the other. So they take turns: one does the rest while the others multiply.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

Part = TypeVar("Part")
Result = TypeVar("Result")

_turn = threading.Lock()
_mine = threading.local()


def cores() -> int:
    """As many as BLAS would use: those of this process, or as OMP_NUM_THREADS says; 1 where that cannot be known."""
    return max((int(each["num_threads"]) for each in _libraries().select(user_api="blas").info()), default=1)


def in_threads(work: Callable[[Part], Result], parts: Sequence[Part], count: int | None = None) -> list[Result]:
    """The work on each part, in their order. A single part has all threads of BLAS to itself.

    The work must not share itself out again: it would wait for a turn that it has.
    """
    count = count or cores()
    if len(parts) <= 1 or count == 1:
        return [work(part) for part in parts]

    def in_turn(part: Part) -> Result:
        with _turn:
            _mine.turn = True
            try:
                return work(part)
            finally:
                _mine.turn = False

    with _libraries().limit(limits=1, user_api="blas"):
        return list(_pool(count).map(in_turn, parts))


@contextmanager
def others_turn() -> Iterator[None]:
    """Around what takes long and needs no lock of the interpreter's: lets the other threads of `in_threads` go on."""
    if not getattr(_mine, "turn", False):
        yield
        return
    _mine.turn = False
    _turn.release()
    try:
        yield
    finally:
        _turn.acquire()
        _mine.turn = True


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


@cache
def _pool(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, "search")
