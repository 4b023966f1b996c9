"""The limits of a worker's memory and processors on this machine, where no container holds it to them. Starts and ends
nothing.

Memory is what a cgroup would count and could not take away: pages without a file behind them, of the process and all of
its descendants, those that are shared once. It is looked at often, and not reserved, so code may exceed its limit for
the moment until then. A limit of addresses (RLIMIT_AS) would need no looking, but libraries such as TensorFlow reserve
many times what they use.
"""

import contextlib
import math
import os
import re
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

from localpachd.worker.machine.invocation import tool

BETWEEN_LOOKS = 0.1
"""Seconds."""

_MEBI = 1 << 20
_KEPT = re.compile(r"^(?:RssAnon|RssShmem):\s+(\d+) kB$", re.MULTILINE)
_SHARED = re.compile(r"^(?:Pss_Anon|Pss_Shmem):\s+(\d+) kB$", re.MULTILINE)
_turns = count()


def memory_excess(process: int, limit: int) -> str:
    """The reason why a process has to end that holds, with its descendants, more than `limit` bytes; "" if it does not.

    The exact count takes milliseconds, so a quick one that counts shared pages in each process goes before it.
    """
    if _held(process, "status", _KEPT) <= limit:
        return ""
    exactly = memory_held(process)
    if exactly <= limit:
        return ""
    return (
        f"user code held {exactly / _MEBI:,.0f} MiB of memory, and resource_limits.memory allows "
        f"{limit / _MEBI:,.0f} MiB: raise it, or let user code hold less at once"
    )


def memory_held(process: int) -> int:
    """The bytes that a process holds with its descendants, in milliseconds."""
    return _held(process, "smaps_rollup", _SHARED)


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


def _held(process: int, name: str, pattern: re.Pattern[str]) -> int:
    """The bytes that one of the kernel's files adds up to, over a process and its descendants."""
    total = 0
    for each in (process, *_descendants(process)):
        with contextlib.suppress(OSError):  # it has ended
            total += sum(map(int, pattern.findall(Path(f"/proc/{each}/{name}").read_text())))
    return total << 10


def _descendants(process: int) -> Iterator[int]:
    for child in _children(process):
        yield child
        yield from _descendants(child)


def _children(process: int) -> Sequence[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):  # noqa: PTH208 (this runs ten times a second)
            found += map(int, Path(f"/proc/{process}/task/{thread}/children").read_text().split())
    return found
