"""Profiles of this process as text: the stacks of its threads, the processor time by stack, the memory by type."""

import gc
import os
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType

from localpachd.errors import PachError

DEFAULT_SECONDS = 60.0
_INTERVAL = 0.01
_TASKS = Path("/proc/self/task")
_STATUS = Path("/proc/self/status")
_MOST_TYPES = 100


def profile(name: str, seconds: float, active: Callable[[], bool]) -> str:
    """The profile of this name: `goroutine` (as Go calls its threads), `heap`, or `cpu`, which takes that many seconds
    but ends early when `active` is false. PachError for another name."""
    if name == "goroutine":
        return stacks()
    if name == "heap":
        return heap()
    if name == "cpu":
        return cpu(seconds, active)
    raise PachError(f'unable to find profile "{name}": localpachd has the profiles cpu, goroutine and heap')


def stacks() -> str:
    """The stack of every thread, the newest call last."""
    names = {each.ident: each.name for each in threading.enumerate()}
    parts = []
    for ident, frame in sorted(sys._current_frames().items()):
        parts.append(f"thread {ident} ({names.get(ident, 'unnamed')}):\n{''.join(traceback.format_stack(frame))}")
    return "\n".join(parts)


def heap() -> str:
    """The process's memory by the kernel's count, and the number and bytes of Python's objects by type.

    A copy of this process counts. Here, a thread that is making a tuple of an iterator would fail (SystemError,
    CPython's issue 59313): the collector lists the tuple, and so refers to it, before it is complete.
    """
    memory = _memory()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with os.fdopen(writer, "w", encoding="utf-8") as there:
                there.write("\n".join(_objects()))
        finally:
            os._exit(0)
    os.close(writer)
    try:
        with os.fdopen(reader, encoding="utf-8") as here:
            rows = here.read()
    finally:
        os.waitpid(child, 0)
    return "\n".join([*memory, "", f"{'bytes':>12} {'objects':>10}  type", rows, ""])


def _objects() -> list[str]:
    """The lines of the types with the most bytes."""
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    seen: set[int] = set()
    for each in gc.get_objects():
        # The collector tracks no texts, bytes and numbers: they are counted where they are referred to.
        for found in (each, *(leaf for leaf in gc.get_referents(each) if not gc.is_tracked(leaf))):
            if id(found) not in seen:
                seen.add(id(found))
                name = f"{type(found).__module__}.{type(found).__qualname__}"
                counts[name] += 1
                sizes[name] += sys.getsizeof(found, 0)
    return [f"{size:12d} {counts[name]:10d}  {name}" for name, size in sizes.most_common(_MOST_TYPES)]


def cpu(seconds: float, active: Callable[[], bool]) -> str:
    """The processor time of this process in microseconds by stack, sampled: a line for each, with the calls from the
    thread on, separated by semicolons, as flame graphs are drawn from. Threads without Python code are named as the
    kernel does."""
    spent: Counter[str] = Counter()
    before, end = _processor_times(), time.monotonic() + seconds
    while active() and time.monotonic() < end:
        time.sleep(_INTERVAL)
        now, frames = _processor_times(), sys._current_frames()
        python = {each.native_id: each for each in threading.enumerate()}
        for native, total in now.items():
            used, thread = total - before.get(native, 0), python.get(native)
            if used > 0 and native != threading.get_native_id():
                frame = frames.get(thread.ident) if thread is not None and thread.ident is not None else None
                spent[_stack(thread.name if thread is not None else _kernels_name(native), frame)] += used // 1000
        before = now
    return "".join(f"{stack} {used}\n" for stack, used in spent.most_common())


def _stack(thread: str, frame: FrameType | None) -> str:
    calls = []
    while frame is not None:
        calls.append(f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_qualname}:{frame.f_lineno}")
        frame = frame.f_back
    return ";".join(part.replace(";", ",").replace(" ", "_") for part in (thread, *reversed(calls)))


def _processor_times() -> Mapping[int, int]:
    """The nanoseconds that each thread of this process has run, by its number in the kernel."""
    found = {}
    for task in _TASKS.iterdir():
        try:
            found[int(task.name)] = int((task / "schedstat").read_text().split()[0])
        except (OSError, ValueError, IndexError):  # it has ended
            continue
    return found


def _kernels_name(native: int) -> str:
    try:
        return (_TASKS / str(native) / "comm").read_text().strip()
    except OSError:
        return "ended"


def _memory() -> list[str]:
    wanted = ("VmPeak", "VmSize", "VmHWM", "VmRSS", "VmData", "Threads")
    return [line for line in _STATUS.read_text().splitlines() if line.partition(":")[0] in wanted]
