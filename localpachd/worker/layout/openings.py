"""What other processes have open, and how often, as /proc and kcmp(2) show it. Opens and changes nothing."""

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


class Younger:
    """The processes that were started after ours. To look at an age takes longer than all else here, so it is looked at
    once; and numbers of processes come again, so this serves one attempt at a datum."""

    def __init__(self) -> None:
        self._own = str(os.getpid())
        self._begun = _begun(self._own)
        self._known: dict[str, bool] = {self._own: False}

    def __iter__(self) -> Iterator[str]:
        for process in os.listdir("/proc"):  # noqa: PTH208 (this runs for each of thousands of files, as below)
            younger = self._known.get(process)
            if younger is None and process.isdecimal():
                with contextlib.suppress(OSError):  # it has ended
                    younger = self._known[process] = _begun(process) >= self._begun
            if younger:
                yield process


def others(descriptor: int, younger: Younger) -> int:
    """How many openings of the file behind one of our descriptors there are in processes younger than ours, apart from
    the one that this descriptor is itself.

    Descriptors that were inherited or duplicated belong to one opening. Those of processes that we may not look into
    are not counted, and none are where the system cannot compare them.
    """
    found: list[_Descriptor] = [(os.getpid(), descriptor)]
    for each in _descriptors(os.fstat(descriptor), younger):
        if all(_differ(each, known) for known in found):
            found.append(each)
    return len(found) - 1


def has_open(name: str, younger: Younger) -> bool:
    """Whether a process younger than ours has a file open, or works in a directory, with this name in its path: one
    that is found nowhere else. Processes that we may not look into have not."""
    return any(name in path for process in younger for path in _paths(process))


def _paths(process: str) -> Iterator[str]:
    """The paths of a process's working directory, and of what it has open, as they are to any process."""
    for each in ("cwd", *(f"fd/{number}" for number in _numbers(process))):
        with contextlib.suppress(OSError):
            yield os.readlink(f"/proc/{process}/{each}")  # noqa: PTH115


def _descriptors(file: os.stat_result, younger: Younger) -> Iterator[_Descriptor]:
    for process in younger:  # an older one belongs to nothing that we have started
        for number in _numbers(process):
            with contextlib.suppress(OSError):
                seen = os.stat(f"/proc/{process}/fd/{number}")  # noqa: PTH116
                if seen.st_ino == file.st_ino and seen.st_dev == file.st_dev:
                    yield int(process), int(number)


def _numbers(process: str) -> list[str]:
    """The numbers of a process's descriptors; none if it has ended, or we may not look into it."""
    try:
        return os.listdir(f"/proc/{process}/fd")  # noqa: PTH208
    except OSError:
        return []


def _begun(process: str) -> int:
    """When a process was started, in ticks since the machine was."""
    with open(f"/proc/{process}/stat", "rb") as file:  # noqa: PTH123
        return int(file.read().rpartition(b")")[2].split()[19])


def _differ(left: _Descriptor, right: _Descriptor) -> bool:
    """Whether two descriptors of one file belong to two openings of it."""
    return _KCMP is not None and _LIBC.syscall(_KCMP, left[0], right[0], _FILE, left[1], right[1]) > 0
