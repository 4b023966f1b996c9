"""What all benchmarks share: measuring side by side, which machine it was, the table, the JSON. Knows no benchmark."""

import importlib.metadata
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

BOUND = "lower bound"
"""What ours is measured beside, if nothing else is said."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: `section` says of what, `name` is "ours", "bound" or another thing that it is compared with.

    `seconds` is the best of several, `rate` things per second, `peak_mib` the most memory that the measured server
    held, in MiB; None where that was not measured.
    """

    section: str
    name: str
    seconds: float | None = None
    rate: float | None = None
    peak_mib: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table, in words: what was measured, ours, the lower bound, ours by the bound, the goal, and
    whether it is met ("yes", "no", or "" without a goal)."""

    what: str
    ours: str
    bound: str = ""
    ratio: str = ""
    goal: str = ""
    met: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What a section of a benchmark found."""

    rows: tuple[Row, ...]
    lines: tuple[Line, ...]


def interleaved(rounds: int, *measures: Callable[[], float]) -> list[float]:
    """The least of what each measure gave over some rounds, in each of which every one has its turn: whatever else the
    machine is busy with hits all of them."""
    taken = [[measure() for measure in measures] for _ in range(rounds)]
    return [min(each) for each in zip(*taken, strict=True)]


def timed(work: Callable[[], object]) -> float:
    """Seconds that a piece of work takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def line(
    what: str, ours: float, bound: float | None, unit: str, goal: str = "", met: bool | None = None, digits: int = 1
) -> Line:
    """A line of figures in one unit."""
    mine, least = (f"{value:,.{digits}f} {unit}" if value is not None else "" for value in (ours, bound))
    ratio = f"{ours / bound:.2f}" if bound else ""
    return Line(what, mine, least, ratio, goal, "" if met is None else "yes" if met else "no")


def machine() -> dict[str, Any]:
    """Which machine this is, and how busy: the load average of the last minute."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.release()}",
        "load": round(os.getloadavg()[0], 1),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def versions(packages: Iterable[str]) -> dict[str, str]:
    """The versions of Python and of some packages."""
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in packages}}


def commit() -> str:
    """The commit of the code that is measured, with a plus where the tree differs from it; "" outside of a checkout."""
    command = ("git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*")
    try:
        said = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return said.stdout.strip()


def plain(lines: Sequence[Line], beside: str = BOUND) -> str:
    """The table for a terminal; `beside` is what ours is measured beside."""
    table = [_header(beside), *(astuple(each) for each in lines)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    rows = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table)
    return "\n".join(rows)


def markdown(
    lines: Sequence[Line], surroundings: Mapping[str, Any], used: Mapping[str, str], code: str, beside: str = BOUND
) -> str:
    """The table for a document, below a sentence on where and with what it was measured."""
    place = (
        f"Measured on {surroundings['date']}: {surroundings['processor']}, {surroundings['cores']} cores, "
        f"{surroundings['memory_gib']} GiB, {surroundings['system']}, load {surroundings['load']} at the start; "
        f"{', '.join(f'{name} {version}' for name, version in used.items())}; commit {code or 'unknown'}."
    )
    header = _header(beside)
    rows = [header, ("---",) * len(header), *(astuple(each) for each in lines)]
    return "\n".join([place, "", *(f"| {' | '.join(row)} |" for row in rows)])


def write_json(
    path: Path, rows: Sequence[Row], surroundings: Mapping[str, Any], used: Mapping[str, str], code: str
) -> None:
    """Writes {"machine", "versions", "commit", "rows"}."""
    content = {"machine": surroundings, "versions": used, "commit": code, "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(content, indent=2) + "\n")


def _header(beside: str) -> tuple[str, ...]:
    return ("what", "ours", beside, "ratio", "goal", "met")


def _processor() -> str:
    """The processor's name as the kernel says it."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.machine()
    names = (entry.partition(":")[2].strip() for entry in text.splitlines() if entry.startswith("model name"))
    return next(names, platform.machine())
