"""Owns the findings of one step, and times it. Knows no step.

A step is a process of its own, `python -m studies.gpu.MODULE STEP RESULT.json`, which studies.gpu.prove starts.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REHEARSAL = os.environ.get("REHEARSAL") == "1"
"""Whether the steps only rehearse: on a processor, with small sizes and the stand-ins of `rehearsal/`."""


class Notebook:
    """What a step finds, and the lines that lookalike writes to its log meanwhile.

    The file is written again with each finding, so a step that is killed loses none. It is a JSON object: `notes`,
    `log`, `seconds`, and `failure`, a traceback or null ("unfinished" until the step has ended).
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        self._start = time.monotonic()
        self._notes: dict[str, Any] = {}
        self._log: list[str] = []

    def note(self, name: str, value: Any) -> None:
        """Keeps a finding: JSON, or else its text."""
        self._notes[name] = value
        self.write("unfinished")
        print(f"{self._seconds():7.2f} s  {name}: {value}", flush=True)

    def attempt(self, name: str, work: Callable[[], Any]) -> None:
        """Notes what the work returns, or how it fails."""
        try:
            found = work()
        except Exception as failure:
            found = {"failed": "".join(traceback.format_exception(failure))[-3000:]}
        self.note(name, found)

    def log(self, line: str) -> None:
        """Keeps a line of lookalike's log, with the seconds since the step's start."""
        self._log.append(f"{self._seconds():.2f} {line}")
        print(f"         | {line}", flush=True)

    @contextmanager
    def memory(self, name: str) -> Iterator[None]:
        """Notes the most memory of the card and of this process, in MiB, while the block runs."""
        seen, over = [card_memory()], threading.Event()

        def watch() -> None:
            while not over.wait(0.2):
                seen.append(card_memory())

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            sizes = {"card before": seen[0], "card at most": max(seen), "process at most": _peak()}
            self.note(f"{name}: memory, MiB", sizes)

    def write(self, failure: str | None) -> None:
        """Writes the file, with the failure that ended the step."""
        content = {"notes": self._notes, "log": self._log, "failure": failure, "seconds": round(self._seconds(), 1)}
        beside = self._place.with_suffix(".new")
        beside.write_text(json.dumps(content, default=str, indent=1))
        beside.replace(self._place)

    def _seconds(self) -> float:
        return time.monotonic() - self._start


def main(steps: Mapping[str, Callable[[Notebook], None]]) -> int:
    """Runs the step that the command line names, and writes its findings to the file named there; 1 if it fails."""
    name, place = sys.argv[1:]
    notebook = Notebook(Path(place))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        steps[name](notebook)
    except Exception:
        print(failure := traceback.format_exc(), flush=True)
        notebook.write(failure)
        return 1
    notebook.write(None)
    return 0


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """The seconds of the work, and what it returns."""
    start = time.perf_counter()
    made = work()
    return time.perf_counter() - start, made


def best(work: Callable[[], object], rounds: int) -> dict[str, float]:
    """Seconds: the first time, and the least and the median of so many rounds after it."""
    first, _ = timed(work)
    rest = sorted(timed(work)[0] for _ in range(rounds))
    return {
        "first": round(first, 5),
        "least": round(rest[0], 5),
        "median": round(rest[len(rest) // 2], 5),
        "rounds": rounds,
    }


def card_memory() -> int:
    """MiB of the card in use, by all processes."""
    if REHEARSAL:
        return 0
    asked = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    return int(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()[0])


def _peak() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM"))
