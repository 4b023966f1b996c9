"""Shares work among a processor's cores, in threads with one BLAS thread each. Knows no vectors.

Multiplying in many threads and doing the rest in one leaves the cores idle during the rest. NumPy releases the
interpreter's lock while it multiplies, but not in much of the rest, and two threads that compete for the lock take
longer than one after the other. So they take turns: one thread does the rest while the others multiply.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

_PartT = TypeVar("_PartT")
_ResultT = TypeVar("_ResultT")

_turn = threading.Lock()
_mine = threading.local()


def cores() -> int:
    """The number of threads that BLAS would use: the cores of this process, or OMP_NUM_THREADS; 1 if unknown."""
    return max((int(each["num_threads"]) for each in _libraries().select(user_api="blas").info()), default=1)


def in_threads(work: Callable[[_PartT], _ResultT], parts: Sequence[_PartT], count: int | None = None) -> list[_ResultT]:
    """The results of the work on each part, in order. A single part has all BLAS threads to itself.

    count: of threads; None for one per core. The work must not call this again: it would wait for its own turn.
    """
    count = count or cores()
    if len(parts) <= 1 or count == 1:
        return [work(part) for part in parts]

    def in_turn(part: _PartT) -> _ResultT:
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
    """Wraps long work that does not need the interpreter's lock: lets the other threads of `in_threads` continue."""
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
