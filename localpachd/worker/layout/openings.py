"""How often a file is open in other processes, as /proc and kcmp(2) show it. Opens and changes nothing."""

import contextlib
import ctypes
import os
import platform
from collections.abc import Iterator

_KCMP = {"x86_64": 312, "aarch64": 272, "riscv64": 272, "ppc64le": 354, "s390x": 343}.get(platform.machine())
_LIBC = ctypes.CDLL(None)
_FILE = 0

_Descriptor = tuple[int, int]
"""A process, and the number of one of its descriptors."""


def others(descriptor: int) -> int:
    """How many openings of the file behind one of our descriptors there are in processes younger than ours, apart from
    the one that this descriptor is itself.

    Descriptors that were inherited or duplicated belong to one opening. Those of processes that we may not look into
    are not counted, and none are where the system cannot compare them.
    """
    found: list[_Descriptor] = [(os.getpid(), descriptor)]
    for each in _descriptors(os.fstat(descriptor)):
        if all(_differ(each, known) for known in found):
            found.append(each)
    return len(found) - 1


def _descriptors(file: os.stat_result) -> Iterator[_Descriptor]:
    own = str(os.getpid())
    begun = _begun(own)
    for process in os.listdir("/proc"):  # noqa: PTH208 (this runs for each of thousands of files, as below)
        if not process.isdecimal() or process == own:
            continue
        with contextlib.suppress(OSError):
            if _begun(process) < begun:
                continue  # it belongs to nothing that we have started
            for number in os.listdir(f"/proc/{process}/fd"):  # noqa: PTH208
                with contextlib.suppress(OSError):
                    seen = os.stat(f"/proc/{process}/fd/{number}")  # noqa: PTH116
                    if seen.st_ino == file.st_ino and seen.st_dev == file.st_dev:
                        yield int(process), int(number)


def _begun(process: str) -> int:
    """When a process was started, in ticks since the machine was."""
    with open(f"/proc/{process}/stat", "rb") as file:  # noqa: PTH123
        return int(file.read().rpartition(b")")[2].split()[19])


def _differ(left: _Descriptor, right: _Descriptor) -> bool:
    """Whether two descriptors of one file belong to two openings of it."""
    return _KCMP is not None and _LIBC.syscall(_KCMP, left[0], right[0], _FILE, left[1], right[1]) > 0
