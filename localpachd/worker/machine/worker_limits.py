"""The limits of a command's memory, processes and processors on this machine, where no container holds it to them.
Starts and ends nothing.

Memory is what a cgroup would count and could not take away: pages without a file behind them, of the process and all of
its descendants, those that are shared once, and files in memory (see `memory_files`). It is looked at often, and not
reserved, so code may exceed its limit for the moment until then. A limit of addresses (RLIMIT_AS) would need no
looking, but libraries such as TensorFlow reserve many times what they use. The kernel's limit of processes
(RLIMIT_NPROC) counts all those of a user, and none of root's.
"""

import contextlib
import math
import os
import re
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path

from localpachd.worker.machine import memory_files
from localpachd.worker.machine.invocation import tool

BETWEEN_LOOKS = 0.1
"""Seconds."""
MOST_PROCESSES = 1000
"""The processes that a command may have at once, itself included."""

_MEBI = 1 << 20
_KEPT = re.compile(r"^(?:RssAnon|RssShmem):\s+(\d+) kB$", re.MULTILINE)
_SHARED = re.compile(r"^(?:Pss_Anon|Pss_Shmem):\s+(\d+) kB$", re.MULTILINE)
_OF_THE_MACHINE = re.compile(r"^Shmem:\s+(\d+) kB$", re.MULTILINE)
_turns = count()


class CommandLimits:
    """The limits of one command. `memory` is the most bytes that it may hold with its descendants, 0 for no limit;
    `directories` are those of its own that this machine has in memory."""

    def __init__(self, memory: int = 0, directories: Sequence[Path] = ()) -> None:
        self._memory = memory
        self._directories = directories
        self._processes = 0
        self._newest = 0

    def excess(self, process: int) -> str:
        """The reason why a process has to end that exceeds them with its descendants; "" if it does not."""
        return self._processes_excess(process) or memory_excess(process, self._memory, self._directories)

    def _processes_excess(self, process: int) -> str:
        newest = int(Path("/proc/loadavg").read_text().split()[-1])  # given to a process or thread of the machine
        if 0 < self._newest <= newest and self._processes + newest - self._newest <= MOST_PROCESSES:
            return ""  # not even if all that the machine has started since belong to it
        self._newest, self._processes = newest, len(_family(process))
        if self._processes <= MOST_PROCESSES:
            return ""
        return (
            f"user code had {self._processes:,} processes at once, and a command may have {MOST_PROCESSES:,}: let it "
            "wait for the end of some before it starts others"
        )


def memory_excess(process: int, limit: int, directories: Sequence[Path] = ()) -> str:
    """The reason why a process has to end that holds, with its descendants and in these directories, more than `limit`
    bytes; "" if it does not, or if that is 0.

    The exact count takes milliseconds, so quick ones that count too much go before it.
    """
    if not limit:
        return ""
    family = _family(process)
    quick = _held(family, "status", _KEPT)
    if quick + _held(("",), "meminfo", _OF_THE_MACHINE) <= limit:
        return ""
    if quick + sum(memory_files.sizes(family, directories).values()) <= limit:
        return ""
    exactly = memory_held(process, directories)
    if exactly <= limit:
        return ""
    return (
        f"user code held {exactly / _MEBI:,.0f} MiB of memory, and resource_limits.memory allows "
        f"{limit / _MEBI:,.0f} MiB (OOMKilled): raise it, or let user code hold less at once"
    )


def memory_held(process: int, directories: Sequence[Path] = ()) -> int:
    """The bytes that a process holds with its descendants and in these directories, in milliseconds."""
    family = _family(process)
    files = memory_files.sizes(family, directories)
    # Files that are mapped count once. A process that ends between the looks has them in one of the counts alone.
    before = memory_files.mapped(family, files)
    held = _held(family, "smaps_rollup", _SHARED)
    return held + sum(files.values()) - max(before, memory_files.mapped(family, files))


def cpu_pinning(cpus: float) -> tuple[str, ...]:
    """The command that keeps another one, given as its arguments, on as many processors as `cpus` needs; () if these
    are all. Workers take turns on which they are."""
    available = sorted(os.sched_getaffinity(0))
    wanted = math.ceil(cpus)
    if not 0 < wanted < len(available):
        return ()
    first = next(_turns) * wanted
    chosen = sorted(available[(first + each) % len(available)] for each in range(wanted))
    return (tool("taskset"), "--cpu-list", ",".join(map(str, chosen)))


def _held(processes: Iterable[int | str], name: str, pattern: re.Pattern[str]) -> int:
    """The bytes that one of the kernel's files adds up to, over processes."""
    total = 0
    for each in processes:
        with contextlib.suppress(OSError):  # it has ended
            total += sum(map(int, pattern.findall(Path(f"/proc/{each}/{name}").read_text())))
    return total << 10


def _family(process: int) -> list[int]:
    """A process and its descendants; not all of them where they are too many, so that no chain is longer than time."""
    found = [process]
    for each in found:  # grows meanwhile
        if len(found) > 2 * MOST_PROCESSES:
            break
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{each}/task"):  # noqa: PTH208 (this runs ten times a second)
                found += map(int, Path(f"/proc/{each}/task/{thread}/children").read_text().split())
    return found
