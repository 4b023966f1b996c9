"""The order of pictures in an epoch, and their pixels made ahead in threads while a network trains on the last ones.

Knows no files, no labels and no network.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from stages.record.framing import Pixels

BatchRows = npt.NDArray[np.int64]

_AHEAD = 2  # batches that are made before they are asked for
_TASK = 8  # pictures of one task of a thread


def epoch_order(rows: BatchRows, ids: Sequence[str], seed: int, epoch: int) -> BatchRows:
    """The rows in the order of an epoch: a function of the seed, the epoch and the ids of the rows alone, as good as
    random. ids: of all rows."""

    def place(row: int) -> bytes:
        return hashlib.sha256(f"order:{seed}:{epoch}:{ids[row]}".encode()).digest()

    return np.array(sorted(rows.tolist(), key=place), np.int64)


def split_rows(rows: BatchRows, size: int, begin: int = 0) -> Iterator[BatchRows]:
    """The rows in lots of `size`, but for the last one, without the first `begin` lots."""
    for first in range(begin * size, len(rows), size):
        yield rows[first : first + size]


def load_batches(make: Callable[[BatchRows], Pixels], lots: Iterable[BatchRows]) -> Iterator[tuple[BatchRows, Pixels]]:
    """Each lot with its pictures, uint8 (n, S, S, 3), in order. make: makes the pictures of some rows, in any thread,
    each of them independently of the others."""
    under_way: deque[tuple[BatchRows, list[Future[Pixels]]]] = deque()
    with ThreadPoolExecutor(os.cpu_count(), "pictures") as threads:
        try:
            for rows in lots:
                under_way.append((rows, [threads.submit(make, some) for some in split_rows(rows, _TASK)]))
                if len(under_way) > _AHEAD:
                    yield _whole(*under_way.popleft())
            while under_way:
                yield _whole(*under_way.popleft())
        finally:
            for _, tasks in under_way:
                for task in tasks:
                    task.cancel()


def _whole(rows: BatchRows, tasks: list[Future[Pixels]]) -> tuple[BatchRows, Pixels]:
    return rows, np.concatenate([task.result() for task in tasks])
