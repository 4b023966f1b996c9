"""The part that all benchmarks share: measuring in turns, describing the machine, the table, the JSON. Knows no
benchmark."""

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
"""The default caption of the comparison."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement, of a `section`; `name` is "ours", "bound" or another comparison.

    `seconds` is the best of several, `rate` is per second, `peak_mib` is the peak memory of the measured server in MiB;
    each is None if it was not measured.
    """

    section: str
    name: str
    seconds: float | None = None
    rate: float | None = None
    peak_mib: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table as text: what was measured, ours, the lower bound, the ratio of ours to it, the goal, and
    whether it is met ("yes", "no", or "" without a goal)."""

    what: str
    ours: str
    bound: str = ""
    ratio: str = ""
    goal: str = ""
    met: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """The measurements of one section of a benchmark."""

    rows: tuple[Row, ...]
    lines: tuple[Line, ...]


def interleaved(rounds: int, *measures: Callable[[], float]) -> list[float]:
    """The least result of each measure over several rounds. They take turns in each round, so that the machine's other
    work affects all of them."""
    taken = [[measure() for measure in measures] for _ in range(rounds)]
    return [min(each) for each in zip(*taken, strict=True)]


def timed(work: Callable[[], object]) -> float:
    """The seconds that a piece of work takes."""
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
    """The machine, and its load average of the last minute."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.release()}",
        "load": round(os.getloadavg()[0], 1),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def versions(packages: Iterable[str]) -> dict[str, str]:
    """The versions of Python and of some packages, of which another build may be installed (tensorflow-cpu)."""
    return {"python": platform.python_version(), **{name: _version(name) for name in packages}}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return importlib.metadata.version(f"{package}-cpu")


def commit() -> str:
    """The commit of the measured code, with a plus if the tree differs from it; "" outside of a checkout."""
    command = ("git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*")
    try:
        said = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return said.stdout.strip()


def plain(lines: Sequence[Line], beside: str = BOUND) -> str:
    """The table for a terminal; `beside` is the caption of the comparison."""
    return aligned([_header(beside), *(astuple(each) for each in lines)])


def aligned(table: Sequence[Sequence[str]]) -> str:
    """Rows of as many cells each, in columns."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    rows = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table)
    return "\n".join(rows)


def markdown(
    lines: Sequence[Line], surroundings: Mapping[str, Any], used: Mapping[str, str], code: str, beside: str = BOUND
) -> str:
    """The table for a document, below a sentence on the machine and the versions."""
    header = _header(beside)
    rows = [header, ("---",) * len(header), *(astuple(each) for each in lines)]
    return "\n".join([place(surroundings, used, code), "", *(f"| {' | '.join(row)} |" for row in rows)])


def place(surroundings: Mapping[str, Any], used: Mapping[str, str], code: str) -> str:
    """A sentence on the machine, the versions and the commit of a measurement."""
    return (
        f"Measured on {surroundings['date']}: {surroundings['processor']}, {surroundings['cores']} cores, "
        f"{surroundings['memory_gib']} GiB, {surroundings['system']}, load {surroundings['load']} at the start; "
        f"{', '.join(f'{name} {version}' for name, version in used.items())}; commit {code or 'unknown'}."
    )


def write_json(
    path: Path, rows: Sequence[Row], surroundings: Mapping[str, Any], used: Mapping[str, str], code: str
) -> None:
    """Writes {"machine", "versions", "commit", "rows"}."""
    content = {"machine": surroundings, "versions": used, "commit": code, "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(content, indent=2) + "\n")


def _header(beside: str) -> tuple[str, ...]:
    return ("what", "ours", beside, "ratio", "goal", "met")


def _processor() -> str:
    """The processor's name according to the kernel."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.machine()
    names = (entry.partition(":")[2].strip() for entry in text.splitlines() if entry.startswith("model name"))
    return next(names, platform.machine())
