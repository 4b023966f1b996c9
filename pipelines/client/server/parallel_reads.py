"""Threads for reads of a server that need not wait for one another: on a cluster the way there takes most of their
time."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

_THREADS = 16


@contextmanager
def parallel_reads() -> Iterator[ThreadPoolExecutor]:
    """Threads to give reads to. An error in the block, or Ctrl-C, ends it without waiting for the other reads. A read
    that itself gives reads away has threads of its own, or all might wait for a free one."""
    threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="reads")
    try:
        yield threads
    except BaseException:
        threads.shutdown(wait=False, cancel_futures=True)
        raise
    threads.shutdown()
