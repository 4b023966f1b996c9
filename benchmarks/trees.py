"""Owns the memory of a process and its descendants, sampled repeatedly. Knows no server."""

import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

_EVERY = 0.2
"""Seconds between two samples."""

_PROC = Path("/proc")


class Tree:
    """A process with all its descendants, sampled while this is open.

    Memory is the sum of the processes' resident memory. Shared pages count in each process, so the truth is less.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._peak = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="tree", daemon=True)

    def __enter__(self) -> "Tree":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def peak(self) -> float:
        """The most memory held since this was opened or `forget_peak` was called, in MiB."""
        self._look()
        return self._peak

    def forget_peak(self) -> None:
        """Restarts the measurement of the peak."""
        self._peak = 0.0

    def _watch(self) -> None:
        while not self._ended.wait(_EVERY):
            self._look()

    def _look(self) -> None:
        self._peak = max(self._peak, sum(map(_resident, members(self._root, parents()))))


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
