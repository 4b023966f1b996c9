"""The C library's allocator, set for a process that runs for weeks. Knows nothing of what is allocated."""

from __future__ import annotations

import ctypes
import platform

# mallopt's parameters, from glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8

_LARGE = 4 << 20
"""Bytes of a block that goes back to the system as soon as it is freed. By default this grows with the largest block
that was freed, and blocks of some megabytes then stay in the process."""

_FREE_AT_END = 16 << 20
"""Bytes that may stay free at the end of the heap."""

_ARENAS = 2
"""Heaps: by default eight for each core, of which each keeps what its threads have freed."""


def configure_allocator() -> None:
    """Makes freed memory go back to the system early, for the whole process; does nothing without glibc."""
    if platform.libc_ver()[0] != "glibc":
        return
    mallopt = ctypes.CDLL(None).mallopt
    for parameter, value in ((_ARENA_MAX, _ARENAS), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _FREE_AT_END)):
        mallopt(parameter, value)
