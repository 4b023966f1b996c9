"""The pictures of records (stages.record.url_records), fetched some at a time and given in their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from stages.record.url_records import OtherBytesError, UrlRecord

Fetch = Callable[[UrlRecord], bytes]
"""Gives the picture of a record. Raises OtherBytesError if another file is there, and StageError for what may succeed
later."""

_FETCHERS = 8
_AHEAD = 64 << 20
"""Bytes of pictures that are asked for and not taken yet, beside those of the next one."""


def fetched(records: Sequence[UrlRecord], fetch: Fetch) -> Iterator[tuple[UrlRecord, bytes | str]]:
    """Each record with its picture, or with the reason for which another file is there. Raises what `fetch` does for
    the first one that it cannot give; the others are then not waited for."""
    pool = ThreadPoolExecutor(_FETCHERS, "fetch")
    waiting: deque[tuple[UrlRecord, Future[bytes]]] = deque()
    held = 0
    try:
        for record in records:
            while waiting and (held + record.size > _AHEAD or len(waiting) >= 2 * _FETCHERS):
                held -= waiting[0][0].size
                yield _outcome(*waiting.popleft())
            waiting.append((record, pool.submit(fetch, record)))
            held += record.size
        while waiting:
            yield _outcome(*waiting.popleft())
    finally:
        pool.shutdown(cancel_futures=True)


def _outcome(record: UrlRecord, found: Future[bytes]) -> tuple[UrlRecord, bytes | str]:
    try:
        return record, found.result()
    except OtherBytesError as error:
        return record, str(error)
