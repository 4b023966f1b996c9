"""What other processes have open, and how often, as /proc and kcmp(2) show it. Opens and changes nothing."""

import contextlib
import ctypes
import os
import platform
from collections.abc import Iterable, Iterator

_KCMP = {"x86_64": 312, "aarch64": 272, "riscv64": 272, "ppc64le": 354, "s390x": 343}.get(platform.machine())
_LIBC = ctypes.CDLL(None)
_FILE = 0

_Descriptor = tuple[int, int]
"""A process, and the number of one of its descriptors."""

_File = tuple[int, int]
"""A device, and the number of a file on it."""


class YoungerProcesses:
    """The processes that were started after ours. To look at an age or a mount namespace takes longer than all else
    here, so each is looked at once; and numbers of processes come again, so this serves one attempt at a datum."""

    def __init__(self) -> None:
        self._own = str(os.getpid())
        self._begun = _begun(self._own)
        self._known: dict[str, bool] = {self._own: False}
        self._spaces: dict[str, int] = {}
        self._latest = 0  # the namespace that was named last
        self._newest = b""
        self._found: list[str] = []

    def __iter__(self) -> Iterator[str]:
        newest = _newest_process()
        if not newest or newest != self._newest:  # else none was started since
            self._newest = newest
            self._found = [process for process in os.listdir("/proc") if self._is_younger(process)]  # noqa: PTH208 (this runs for each of thousands of files, as below)
        return iter(self._found)

    def in_spaces(self) -> Iterator[tuple[int, list[str]]]:
        """The same by mount namespace, each with its number; first those of the one in which the last was `met`."""
        spaces: dict[int, list[str]] = {self._latest: []}
        for process in self:
            space = self._spaces.get(process)
            if space is None:
                space = self._spaces[process] = _space(process)
            spaces.setdefault(space, []).append(process)
        return iter(spaces.items())

    def met(self, space: int) -> None:
        """Notes that what is looked for is open in a namespace: the next one probably is there, too."""
        self._latest = space

    def _is_younger(self, process: str) -> bool:
        younger = self._known.get(process)
        if younger is None and process.isdecimal():
            with contextlib.suppress(OSError):  # it has ended
                younger = self._known[process] = _begun(process) >= self._begun
        return bool(younger)


def count_openings(descriptors: Iterable[int], younger: YoungerProcesses) -> dict[int, int]:
    """How many openings of the file behind each of our descriptors there are in processes younger than ours, apart from
    the one that this descriptor is itself. Those of one file are all in one mount namespace: its directory is in no
    other.

    Descriptors that were inherited or duplicated belong to one opening. Those of processes that we may not look into
    are not counted, and none are where the system cannot compare them.
    """
    own = os.getpid()
    found: dict[int, list[_Descriptor]] = {each: [(own, each)] for each in descriptors}
    wanted = {_file(os.fstat(each)): each for each in found}
    for space, processes in younger.in_spaces():
        if not wanted:
            break
        for file, each in _opened(processes):
            of = found[wanted[file]] if file in wanted else None
            if of is not None and all(_differ(each, known) for known in of):
                of.append(each)
        left = {file: each for file, each in wanted.items() if len(found[each]) == 1}
        if len(left) < len(wanted):
            younger.met(space)
        wanted = left
    return {each: len(of) - 1 for each, of in found.items()}


def has_open(name: str, younger: YoungerProcesses) -> bool:
    """Whether a process younger than ours has a file open, or works in a directory, with this name in its path: one
    that is found nowhere else. Processes that we may not look into have not."""
    return any(name in path for process in younger for path in _paths(process))


def _paths(process: str) -> Iterator[str]:
    """The paths of a process's working directory, and of what it has open, as they are to any process."""
    for each in ("cwd", *(f"fd/{number}" for number in _numbers(process))):
        with contextlib.suppress(OSError):
            yield os.readlink(f"/proc/{process}/{each}")  # noqa: PTH115


def _opened(processes: Iterable[str]) -> Iterator[tuple[_File, _Descriptor]]:
    """What these processes have open."""
    for process in processes:
        for number in _numbers(process):
            with contextlib.suppress(OSError):
                yield _file(os.stat(f"/proc/{process}/fd/{number}")), (int(process), int(number))  # noqa: PTH116


def _file(state: os.stat_result) -> _File:
    return state.st_dev, state.st_ino


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


def _newest_process() -> bytes:
    """The number of the process or thread that was started last, b"" if the system does not tell."""
    try:
        with open("/proc/loadavg", "rb") as file:  # noqa: PTH123
            return file.read().rpartition(b" ")[2]
    except OSError:
        return b""


def _space(process: str) -> int:
    """The number of a process's mount namespace, 0 if it has ended or we may not look into it."""
    try:
        return os.stat(f"/proc/{process}/ns/mnt").st_ino  # noqa: PTH116
    except OSError:
        return 0


def _differ(left: _Descriptor, right: _Descriptor) -> bool:
    """Whether two descriptors of one file belong to two openings of it."""
    return _KCMP is not None and _LIBC.syscall(_KCMP, left[0], right[0], _FILE, left[1], right[1]) > 0
