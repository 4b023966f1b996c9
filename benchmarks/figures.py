"""The results of runs of the whole pipeline as lines of a table with goals, as measurements and as curves. Measures
nothing."""

import dataclasses
from collections.abc import Mapping, Sequence

from benchmarks.engine import Work, share
from benchmarks.growth import growth
from benchmarks.library import Step
from benchmarks.plots import Panel
from benchmarks.report import Line, Result, Row
from benchmarks.whole import HISTORY, Whole

ENGINE_GOAL = 0.1
SECONDS_GOAL = 20.0
ENGINE_SECONDS_GOAL = 5.0
WARM_GOALS = {1_000: 2.0, 100_000: 6.0}
MEMORY_GOAL = 6 * 1024
STORAGE_GOAL = 1.2
"""Upper limits: the share of the jobs' time without user code; the seconds to a new sheet, and those of the engine; the
MiB of server and workers; the ratio of the bytes on disk to the bytes needed. Those for warm processes are the seconds
to a new sheet in a library of so many pictures at most."""

_NEEDED = "needed"


def result(done: Mapping[int, Whole]) -> Result:
    """The results of the largest size, and their growth since the size before."""
    *_, found = (done[size] for size in sorted(done))
    lines = [*_fill_lines(found), *_memory_lines(found), *_change_lines(found), *_storage_lines(found)]
    lines += _growth_lines(done)
    return Result(tuple(_rows(found)), tuple(lines))


def _fill_lines(found: Whole) -> list[Line]:
    of = f"of {found.pictures:,} pictures"
    lines = [
        _engine_line(f"{work.pipeline} {of}, {_mib(found.repos.get(work.pipeline, 0))} of output", [work])
        for work in found.fill.works
    ]
    lines.append(_engine_line(f"all jobs {of}", found.fill.works))
    fill = found.fill
    lines.append(
        Line(
            f"from the first put to the sheet, {of[3:]}",
            f"{fill.seconds:,.2f} s",
            f"{fill.user:,.2f} s in user code",
            f"{fill.engine / fill.seconds:.1%} engine",
        )
    )
    lines.append(Line(f"putting {of[3:]}", f"{fill.put:,.2f} s", "", f"{fill.pictures / fill.put:,.0f} pictures/s"))
    return lines


def _engine_line(what: str, works: Sequence[Work]) -> Line:
    wall, user, part = sum(each.wall for each in works), sum(each.user for each in works), share(works)
    return Line(
        what,
        f"{wall:,.2f} s",
        f"{user:,.2f} s in user code",
        f"{part:.1%} engine",
        f"at most {ENGINE_GOAL:.0%}",
        _met(part <= ENGINE_GOAL),
    )


def _memory_lines(found: Whole) -> list[Line]:
    peak = max(each.peak for each in (found.fill, *found.changes))
    return [
        Line(
            f"peak memory of server and workers, {found.pictures:,} pictures",
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
        goal, met = _goal(step, found.pictures)
        lines += [
            Line(
                f"{step.name}, of {found.pictures:,}",
                f"{step.seconds:,.2f} s",
                f"{step.user:,.2f} s in user code",
                f"{step.engine:,.2f} s engine",
                goal,
                met,
            ),
            Line("its datums, processed/all", _datums(step)),
        ]
    return lines


def _goal(step: Step, pictures: int) -> tuple[str, str]:
    """The goal for a change of a library of that size, and whether it was met; "" without one."""
    warm = next((seconds for most, seconds in WARM_GOALS.items() if pictures <= most), None)
    if step.name == "add one picture":
        met = step.seconds <= SECONDS_GOAL and step.engine < ENGINE_SECONDS_GOAL
        return f"{SECONDS_GOAL:.0f} s, engine {ENGINE_SECONDS_GOAL:.0f} s", _met(met)
    if step.name == "add one picture, warm" and warm is not None:
        return f"{warm:.0f} s", _met(step.seconds <= warm)
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
                f"on disk, {found.pictures:,} pictures, {kept.when}",
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


def _growth_lines(done: Mapping[int, Whole]) -> list[Line]:
    """The growth from the second largest size to the largest."""
    two = sorted(done)[-2:]
    return [
        each
        for panel in panels(done)
        for name, values in panel.lines.items()
        if len(two) == 2 and name != _NEEDED
        for each in growth({size: values[size] for size in two}, f"growth of {panel.title}, {name},")
    ]


def panels(done: Mapping[int, Whole]) -> list[Panel]:
    """The plots against size: time, and bytes."""
    seconds: dict[str, dict[int, float]] = {}
    for size, each in done.items():
        seconds.setdefault("to the sheet", {})[size] = each.fill.seconds
        for work in each.fill.works:
            seconds.setdefault(work.pipeline, {})[size] = work.wall
        for step in each.changes[:1]:
            seconds.setdefault(step.name, {})[size] = step.seconds
    disk = {size: each.kept[0].total / 2**20 for size, each in done.items()}
    least = {size: each.kept[0].needed.total / 2**20 for size, each in done.items()}
    return [Panel("seconds", seconds), Panel("MiB", {"on disk": disk, _NEEDED: least})]


def _rows(found: Whole) -> list[Row]:
    section = f"{found.pictures} pictures"
    rows = [Row(section, "server", peak_mib=found.server_peak)]
    for step in (found.fill, *found.changes):
        rows += [
            Row(section, step.name, step.seconds, step.pictures / step.seconds, step.peak),
            Row(section, f"{step.name}, put", step.put, step.pictures / step.put),
            Row(section, f"{step.name}, user code", step.user),
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
