"""The figures that are committed for each class of machine, and what has changed since by more than noise. Measures
nothing."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.kit.report import Row, aligned

FILE = Path(__file__).with_name("committed.json")
"""{class of machine: {"commit", "date", "load", "figures": {name: {"seconds": [...], "bounds": [...]}}}}"""

MARGIN = 1.1
"""A figure changed if the ranges of the passes are that far apart."""

_OURS = "ours"
_BOUNDS = ("bound", "ceiling")


@dataclass(frozen=True, slots=True)
class Figure:
    """The seconds of one piece of work in each pass, and those of its lower bound in the same passes, if it has one."""

    seconds: tuple[float, ...]
    bounds: tuple[float, ...] = ()

    @property
    def ratios(self) -> tuple[float, ...]:
        """How many times its lower bound it took, in each pass."""
        return tuple(ours / bound for ours, bound in zip(self.seconds, self.bounds, strict=True))


def figures(passes: Sequence[Sequence[Row]]) -> dict[str, Figure]:
    """The figures of all passes by name: ours beside its lower bound in the sections that have both, otherwise every
    row. Other programs are left out."""
    found: dict[str, list[tuple[float, float | None]]] = {}
    for rows in passes:
        for name, ours, bound in _pairs(rows):
            found.setdefault(name, []).append((ours, bound))
    return {
        name: Figure(tuple(ours for ours, _ in taken), tuple(bound for _, bound in taken if bound is not None))
        for name, taken in found.items()
        if len(taken) == len(passes)
    }


def _pairs(rows: Sequence[Row]) -> Iterator[tuple[str, float, float | None]]:
    by_section: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.seconds is not None:
            by_section.setdefault(row.section, {})[row.name] = row.seconds
    for section, seconds in by_section.items():
        if _OURS in seconds:
            yield section, seconds[_OURS], next((seconds[each] for each in _BOUNDS if each in seconds), None)
        elif section == "preprocess":
            yield from ((f"{section} {name}", value, None) for name, value in seconds.items())


def verdict(now: Figure, committed: Figure) -> str:
    """ "slower" or "faster" if the time, and with a lower bound also the ratio to it, changed by more than noise: every
    pass of one run lies beyond every pass of the other, by MARGIN. "" otherwise: a busy machine changes the time and
    not the ratio, and a noisy bound the ratio and not the time."""
    for word, more, less in (("slower", now, committed), ("faster", committed, now)):
        beyond = _beyond(more.seconds, less.seconds)
        if beyond and (not (more.bounds and less.bounds) or _beyond(more.ratios, less.ratios)):
            return word
    return ""


def _beyond(more: Sequence[float], less: Sequence[float]) -> bool:
    return min(more) > MARGIN * max(less)


def table(now: Mapping[str, Figure], committed: Mapping[str, Figure]) -> str:
    """A line for each figure: its median and range, that of the committed one, the ratios to the lower bound, and the
    change."""
    rows = [("figure", "now", "committed", "× its bound", "committed", "")]
    for name, figure in now.items():
        kept = committed.get(name)
        rows.append(
            (
                name,
                _time(figure.seconds),
                _time(kept.seconds) if kept else "",
                _times(figure.ratios) if figure.bounds else "",
                _times(kept.ratios) if kept and kept.bounds else "",
                verdict(figure, kept) if kept else "new",
            )
        )
    return aligned(rows)


def _time(seconds: Sequence[float]) -> str:
    unit, scale = ("s", 1.0) if median(seconds) >= 1 else ("ms", 1e3)
    least, middle, most = (each * scale for each in (min(seconds), median(seconds), max(seconds)))
    return f"{middle:.3g} {unit} ({least:.3g}–{most:.3g})"


def _times(ratios: Sequence[float]) -> str:
    return f"{median(ratios):.3g} ({min(ratios):.3g}–{max(ratios):.3g})"


def machine_class(machine: Mapping[str, Any]) -> str:
    """Machines whose figures can be compared: of the same processor, with as many cores."""
    return f"{machine['processor']}, {machine['cores']} cores"


def read(path: Path, kind: str) -> tuple[dict[str, Figure], str]:
    """The committed figures of a class of machine, and a sentence on them. Raises ValueError for a file that does not
    hold such figures."""
    try:
        kept = json.loads(path.read_text()).get(kind) if path.exists() else None
        if kept is None:
            return {}, f"no figures are committed for {kind}: --keep writes these into {path.name}"
        found = {name: Figure(tuple(each["seconds"]), tuple(each["bounds"])) for name, each in kept["figures"].items()}
        return found, f"committed: {kept['commit']}, {kept['date']}, load {kept['load']} at the start"
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a file of committed figures: restore it from git") from error


def keep(path: Path, kind: str, now: Mapping[str, Figure], machine: Mapping[str, Any], code: str) -> None:
    """Writes figures as those of a class of machine; those of other classes, and other figures, stay."""
    everything = json.loads(path.read_text()) if path.exists() else {}
    others = everything.get(kind, {}).get("figures", {})
    fresh = {name: {"seconds": _short(each.seconds), "bounds": _short(each.bounds)} for name, each in now.items()}
    facts = {"commit": code, "date": machine["date"], "load": machine["load"]}
    everything[kind] = {**facts, "figures": {**others, **fresh}}
    path.write_text(json.dumps(everything, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def _short(seconds: Sequence[float]) -> list[float]:
    return [float(f"{each:.4g}") for each in seconds]
