"""The memory of this process, as Linux counts it."""

import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType


def resident() -> int:
    """Bytes of this process in memory."""
    return _status("VmRSS:")


def anonymous() -> int:
    """Those of them that belong to no file."""
    return _status("RssAnon:")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) << 10
    raise AssertionError("the system does not tell the memory of processes")


def resident_of(file: str) -> int:
    """Bytes of a mapped file, which may be deleted, in the memory of this process."""
    found, current = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, _, rest = line.partition(":")
        if " " in name:  # a mapping begins
            current = line.removesuffix(" (deleted)").endswith(f" {file}")
        elif current and name == "Rss":
            found += int(rest.split()[0]) << 10
    return found


class MemoryPeak:
    """Watches the memory of this process within a block. growth: how many bytes it grew at most."""

    def __init__(self, measure: Callable[[], int] = resident) -> None:
        self.growth = 0
        self._measure = measure
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> "MemoryPeak":
        self._before = self._measure()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.005):
            self.growth = max(self.growth, self._measure() - self._before)
