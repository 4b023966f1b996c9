"""The C library's allocator, set for a process that runs for months with many threads. Knows nothing of what is
allocated."""

import ctypes
import platform

# mallopt's parameters, from glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8

_ARENAS = 2
"""Heaps. By default there are eight for each core, and each keeps what its threads have freed: a server under load grew
for as long as it was watched. Python's lock lets one thread allocate at a time, so that two are enough."""

_LARGE = 1 << 20
"""Bytes of a block that goes back to the system when it is freed, whatever was freed before."""

_FREE_AT_END = 8 << 20
"""Bytes that may stay free at the end of a heap."""


def return_freed_memory() -> None:
    """Makes freed memory go back to the system, for the whole process; does nothing without glibc."""
    if platform.libc_ver()[0] != "glibc":
        return
    mallopt = ctypes.CDLL(None).mallopt
    for parameter, value in ((_ARENA_MAX, _ARENAS), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _FREE_AT_END)):
        mallopt(parameter, value)
