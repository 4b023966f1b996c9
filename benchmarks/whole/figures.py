"""The results of runs of the whole pipeline as lines of a table with goals, as measurements and as curves. Measures
nothing."""

import dataclasses
from collections.abc import Mapping, Sequence

from benchmarks.kit.engine import Work, share
from benchmarks.kit.plots import Panel
from benchmarks.kit.report import Line, Result, Row, line
from benchmarks.races import passes
from benchmarks.whole.changes import MOST_ADDED, more_name
from benchmarks.whole.library import Step
from benchmarks.whole.runs import HISTORY, Size, Whole

PASSES_GOAL = 1.25
MILLION_GOAL = 45 * 60.0
ENGINE_GOAL = 0.05
SECONDS_GOAL = 20.0
ENGINE_SECONDS_GOAL = 5.0
WARM_GOALS = {1_000: 2.0, 100_000: 6.0}
MEMORY_GOAL = 6 * 1024
STORAGE_GOAL = 1.15
"""Upper limits: the time to the sheet beside that of the bare forward passes; the seconds of a million pictures; the
server's own share of the processor time; the seconds to a new sheet, and those of the engine; the MiB of all processes;
the ratio of the bytes on disk to the bytes needed. Those for warm processes are the seconds to a new sheet in a library
of so many pictures at most."""

_MILLION = 1_000_000
_NEEDED = "needed"


def result(found: Whole) -> Result:
    """The results of one size."""
    lines = [*_fill_lines(found), *_usage_lines(found), *_change_lines(found), *_storage_lines(found)]
    return Result(tuple(_rows(found)), tuple(lines))


def bare(found: Whole) -> passes.Pass:
    """The bare forward pass of all pictures, scaled from the sample's."""
    mean = passes.mean(found.passes)
    times = found.size.pictures / mean.pictures
    return passes.Pass(found.size.pictures, mean.seconds * times, mean.processor * times)


def _fill_lines(found: Whole) -> list[Line]:
    of, fill, least = f"of {found.size}", found.fill, bare(found)
    lines = [
        _work_line(f"{work.pipeline} {of}, {_mib(found.repos.get(work.pipeline, 0))} of output", [work])
        for work in fill.works
    ]
    seconds = [each.seconds for each in found.passes]
    spread = f"{' and '.join(f'{each:,.2f}' for each in seconds)} s for {found.passes[0].pictures:,}"
    lines += [
        _work_line(f"all jobs {of}", fill.works),
        Line(f"putting {of[3:]}", f"{fill.put:,.2f} s", "", f"{fill.pictures / fill.put:,.0f} pictures/s"),
        Line(f"bare forward passes, scaled to {found.size.pictures:,}", "", f"{least.seconds:,.2f} s", spread),
        _sheet_line(found, least),
        line("its processor time beside that of the passes", fill.usage.processor, least.processor, "s", digits=2),
        Line(f"distinct pictures in the library, {of[3:]}", f"{found.distinct:,}"),
    ]
    if fill.interruptions:
        lines.append(Line(f"interruptions {of}, whose time is not counted", str(fill.interruptions)))
    return lines


def _sheet_line(found: Whole, least: passes.Pass) -> Line:
    seconds = found.fill.seconds
    goal, met = f"{PASSES_GOAL} × the passes", seconds <= PASSES_GOAL * least.seconds
    if found.size.pictures >= _MILLION:
        goal, met = f"{goal}, {MILLION_GOAL / 60:.0f} min", met and seconds <= MILLION_GOAL
    return line(f"from the first put to the sheet, {found.size}", seconds, least.seconds, "s", goal, met, 2)


def _work_line(what: str, works: Sequence[Work]) -> Line:
    wall, user = sum(each.wall for each in works), sum(each.user for each in works)
    return Line(what, f"{wall:,.2f} s", f"{user:,.2f} s in user code", f"{share(works):.1%} not in it")


def _usage_lines(found: Whole) -> list[Line]:
    peak = max(each.usage.peak for each in (found.fill, *found.changes))
    used, part = found.fill.usage, found.fill.engine_share
    return [
        Line(
            f"the server's own processor time, {found.size}",
            f"{used.own:,.2f} s",
            f"{used.processor:,.2f} s of all",
            f"{part:.1%}",
            f"at most {ENGINE_GOAL:.0%}",
            _met(part <= ENGINE_GOAL),
        ),
        Line(
            f"peak memory of all processes, {found.size}",
            f"{peak:,.0f} MiB",
            "",
            "",
            f"{MEMORY_GOAL:,} MiB",
            _met(peak < MEMORY_GOAL),
        ),
        Line("of the server alone", f"{found.server_peak:,.0f} MiB"),
    ]


def _change_lines(found: Whole) -> list[Line]:
    lines = []
    for step in found.changes:
        goal, met = _goal(step, found)
        lines += [
            Line(
                f"{step.name}, of {found.size}",
                f"{step.seconds:,.2f} s",
                f"{step.user:,.2f} s in user code",
                f"{step.engine:,.2f} s engine",
                goal,
                met,
            ),
            Line("its datums, processed/all", _datums(step)),
        ]
    return lines


def _goal(step: Step, found: Whole) -> tuple[str, str]:
    """The goal for a change of a library, and whether it was met; "" without one."""
    pictures = found.size.pictures
    warm = next((seconds for most, seconds in WARM_GOALS.items() if pictures <= most), None)
    if step.name == "add one picture":
        met = step.seconds <= SECONDS_GOAL and step.engine < ENGINE_SECONDS_GOAL
        return f"{SECONDS_GOAL:.0f} s, engine {ENGINE_SECONDS_GOAL:.0f} s", _met(met)
    if step.name == "add one picture, warm" and warm is not None:
        return f"{warm:.0f} s", _met(step.seconds <= warm)
    one = next((each.seconds for each in found.changes if each.name == "add one picture"), None)
    if step.name == more_name(pictures) and one is not None:
        most = one + found.fill.seconds * step.pictures / pictures
        return f"{most:,.0f} s: one picture, and their share of the first", _met(step.seconds <= most)
    return "", ""


def _datums(step: Step) -> str:
    """The datums that each pipeline processed, of all that it had."""
    worked = [each for each in step.works if each.processed + each.skipped]
    return ", ".join(f"{each.pipeline} {each.processed}/{each.processed + each.skipped}" for each in worked)


def _storage_lines(found: Whole) -> list[Line]:
    lines = []
    for kept in found.kept:
        needed, ratio = kept.needed, kept.total / kept.needed.total
        # The history is kept on purpose.
        bounded = kept.when != HISTORY
        lines += [
            Line(
                f"on disk, {found.size}, {kept.when}",
                _mib(kept.total),
                _mib(needed.total),
                f"{ratio:.2f}",
                f"{STORAGE_GOAL}" if bounded else "",
                _met(ratio <= STORAGE_GOAL) if bounded else "",
            ),
            *(Line(f"in {kind}", _mib(size)) for kind, size in kept.on_disk.items() if size >= 1 << 20),
            *(
                Line(f"needed for {name}", "", _mib(size))
                for name, size in dataclasses.asdict(needed).items()
                if size >= 1 << 20
            ),
        ]
    shown = {name: size for name, size in found.repos.items() if size >= 1 << 20}
    return [*lines, *(Line(f"newest commit of {name}, full", _mib(size)) for name, size in shown.items())]


def panels(done: Mapping[Size, Whole]) -> list[Panel]:
    """The plots against size, for each side: time, and bytes."""
    found = []
    for side in dict.fromkeys(size.side for size in done):
        of_it = {size.pictures: each for size, each in sorted(done.items()) if size.side == side}
        seconds: dict[str, dict[int, float]] = {}
        for size, each in of_it.items():
            for name, value in times(each).items():
                seconds.setdefault(name, {})[size] = value
        disk = {size: each.kept[0].total / 2**20 for size, each in of_it.items()}
        least = {size: each.kept[0].needed.total / 2**20 for size, each in of_it.items()}
        found += [
            Panel(f"seconds, {side} px", seconds),
            Panel(f"MiB, {side} px", {"on disk": disk, _NEEDED: least}),
        ]
    return found


def times(found: Whole) -> dict[str, float]:
    """The seconds that the phases of one size took: the sheet, the put, each pipeline, each change that is made at any
    size."""
    of = {"to the sheet": found.fill.seconds, "put": found.fill.put}
    of |= {work.pipeline: work.wall for work in found.fill.works}
    more = more_name(found.size.pictures)
    return of | {
        "add 1,000" if step.name == more else step.name: step.seconds
        for step in found.changes
        if step.name != more or step.pictures == MOST_ADDED
    }


def _rows(found: Whole) -> list[Row]:
    section = str(found.size)
    least = bare(found)
    rows = [Row(section, "server", peak_mib=found.server_peak)]
    rows.append(Row(section, "bare passes", least.seconds, least.pictures / least.seconds))
    rows.append(Row(section, "bare passes, processor", least.processor))
    for step in (found.fill, *found.changes):
        rows += [
            Row(section, step.name, step.seconds, step.pictures / step.seconds, step.usage.peak),
            Row(section, f"{step.name}, put", step.put, step.pictures / step.put),
            Row(section, f"{step.name}, user code", step.user),
            Row(section, f"{step.name}, processor", step.usage.processor),
            Row(section, f"{step.name}, processor of the server", step.usage.own),
        ]
        for work in step.works:
            name = f"{step.name}, {work.pipeline}"
            rows += [
                Row(section, name, work.wall, work.processed / work.wall),
                Row(section, f"{name}, user code", work.user),
            ]
    for kept in found.kept:
        rows += [Row(f"{section}, bytes, {kept.when}", kind, rate=size) for kind, size in kept.on_disk.items()]
        rows.append(Row(f"{section}, bytes, {kept.when}", _NEEDED, rate=kept.needed.total))
    return rows


def _mib(size: float) -> str:
    return f"{size / 2**20:,.1f} MiB"


def _met(met: bool) -> str:
    return "yes" if met else "no"
