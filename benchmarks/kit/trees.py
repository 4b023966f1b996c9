"""Owns the memory and the processor time of a process and its descendants, sampled repeatedly. Knows no server."""

import os
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

_EVERY = 1.0
"""Seconds between two samples. To read the shared memory, the kernel walks through all of it."""

_PROC = Path("/proc")
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """Seconds of processor time, of all processes and of one alone, and the most memory that all held at one
    time, in MiB."""

    processor: float = 0.0
    own: float = 0.0
    peak: float = 0.0

    def and_then(self, later: "Usage") -> "Usage":
        """The two together."""
        return Usage(self.processor + later.processor, self.own + later.own, max(self.peak, later.peak))


class Tree:
    """A process with all its descendants, sampled while this is open.

    Memory is the sum of the processes' proportional set sizes: pages that n processes share count 1/n in each. Resident
    memory, which counts them n times, is the quicker look that tells when the sum may be a new peak. The time of
    descendants that have ended counts if their parents have waited for them.
    """

    def __init__(self, root: int, alone: int | None = None) -> None:
        """alone: the process of the tree whose own time is told apart, by default the first."""
        self._root = root
        self._alone = root if alone is None else alone
        self._peak = 0.0
        self._before = (0.0, 0.0)
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="tree", daemon=True)

    def __enter__(self) -> "Tree":
        self._before = self._spent()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def peak(self) -> float:
        """The most memory held since this was opened or `forget` was called, in MiB."""
        self._look()
        with self._lock:
            return self._peak

    def usage(self) -> Usage:
        """What was used since this was opened or `forget` was called; the peak is that of the samples."""
        everything, own = self._spent()
        with self._lock:
            return Usage(everything - self._before[0], own - self._before[1], self._peak)

    def forget(self) -> None:
        """Begins the measurement anew, at the memory held now."""
        spent, held = self._spent(), sum(map(proportional_mib, self._members()))
        with self._lock:
            self._before, self._peak = spent, held

    def _watch(self) -> None:
        while not self._ended.wait(_EVERY):
            self._look()

    def _look(self) -> None:
        processes = self._members()
        if sum(map(_resident, processes)) <= self._peak:
            return
        held = sum(map(proportional_mib, processes))
        with self._lock:
            self._peak = max(self._peak, held)

    def _members(self) -> set[int]:
        return members(self._root, parents())

    def _spent(self) -> tuple[float, float]:
        """The processor seconds of all processes, and of the one alone."""
        every = {each: processor_seconds(each) for each in self._members()}
        return sum(own + ended for own, ended in every.values()), every.get(self._alone, (0.0, 0.0))[0]


def processor_seconds(process: int) -> tuple[float, float]:
    """The processor seconds of a process, and those of the descendants that have ended and been waited for; zeros if it
    has ended itself."""
    try:
        fields = (_PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0, 0.0
    user, system, users, systems = (int(each) / _TICK for each in fields[11:15])
    return user + system, users + systems


def processor_seconds_of_all(root: int) -> float:
    """The processor seconds of a process and all its descendants, with those that have ended."""
    return sum(sum(processor_seconds(each)) for each in members(root, parents()))


def proportional_mib(process: int) -> float:
    """The proportional set size of a process in MiB; 0 if it has ended."""
    try:
        text = (_PROC / str(process) / "smaps_rollup").read_text()
    except OSError:
        return 0.0
    found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


def status_mib(process: int | str, name: str) -> float:
    """The memory of a process in MiB, by its number or "self": VmRSS is what it holds now, VmHWM its peak. Unlike
    getrusage's, this peak does not include the process that it was forked from."""
    found = re.search(rf"{name}:\s+(\d+) kB", (_PROC / str(process) / "status").read_text())
    assert found is not None, "the kernel always reports it"
    return int(found[1]) / 1024


def parents() -> dict[int, int]:
    """The parent of every process."""
    found = {}
    for directory in _PROC.iterdir():
        if directory.name.isdecimal():
            try:
                # The name, in parentheses, may hold anything.
                found[int(directory.name)] = int((directory / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue  # it has ended
    return found


def members(root: int, parent_of: Mapping[int, int]) -> set[int]:
    """A process and all its descendants."""
    found = {root}
    pending = [root]
    children: dict[int, list[int]] = {}
    for process, parent in parent_of.items():
        children.setdefault(parent, []).append(process)
    while pending:
        below = set(children.get(pending.pop(), ())) - found
        found |= below
        pending += below
    return found


def _resident(process: int) -> float:
    try:
        pages = int((_PROC / str(process) / "statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
