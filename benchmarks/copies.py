"""The precision and recall of finding copies of pictures, beside imagededup: `python -m benchmarks.copies --help`."""

import argparse
import hashlib
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import drawings, families, finders, photographs, program, report, wheels
from benchmarks.environment import Unavailable
from benchmarks.families import CHANGES, ORIGINAL, Base, Member
from benchmarks.finders import OURS, Finder
from stages.contract import StageError

PACKAGES = ("numpy", "pillow", "tensorflow", "keras", "scikit-image")
PHOTOGRAPHS, DRAWINGS = "photographs", "drawings"
RIGHT = 0.99
"""The precision on photographs that a threshold is chosen for, on the half of them that is not judged afterwards."""

_STEPS = np.round(np.arange(0.2, 0.81, 0.05), 2)  # of the table of thresholds
_GRID = {True: np.round(np.arange(0.0, 1.2, 0.01), 2), False: np.arange(0.0, 33.0)}  # by Finder.root


@dataclass(frozen=True, slots=True)
class Judged:
    """A finder's verdicts on a set. right: for each change, the distances of the copies from their originals. wrong: of
    all pairs of pictures from two families, in the library of the originals and the copies by one change, for each
    change in turn; near: which of them are parts of one photograph."""

    right: Mapping[str, NDArray[np.float64]]
    wrong: NDArray[np.float64]
    near: NDArray[np.bool_]

    def recall(self, threshold: float, change: str | None = None) -> float:
        """The share of the copies, by one change or by all, that are found with their originals."""
        of = np.concatenate(list(self.right.values())) if change is None else self.right[change]
        return float((of <= threshold).mean()) if len(of) else 0.0

    def precision(self, threshold: float) -> float:
        """The share of the pairs found that are a copy and its original; 1 if none is found."""
        right = sum(int((each <= threshold).sum()) for each in self.right.values())
        wrong = int((self.wrong <= threshold).sum())
        return right / (right + wrong) if right + wrong else 1.0

    def mistakes(self, threshold: float, near: bool) -> float:
        """The pairs found in a million of pairs of different pictures: of parts of one photograph if `near`, or of
        unrelated pictures."""
        kind = self.wrong[self.near == near]
        return float(1e6 * (kind <= threshold).mean()) if len(kind) else 0.0


def judge(finder: Finder, members: Sequence[Member], places: NDArray[np.intp]) -> Judged:
    """The verdicts on these members. places: (n,), the number of each among the pictures that the finder has seen."""
    family = np.asarray([each.family for each in members])
    whole = np.unique([each.whole for each in members], return_inverse=True)[1]
    change = np.asarray([each.change for each in members])
    right, wrong, near = {}, [], []
    for name in CHANGES:
        rows = np.flatnonzero((change == ORIGINAL) | (change == name))
        apart = finder.distances(places[rows])
        one, other = np.triu_indices(len(rows), 1)
        same = family[rows][one] == family[rows][other]
        found = apart[one, other]
        right[name] = found[same]
        wrong.append(found[~same])
        near.append((whole[rows][one] == whole[rows][other])[~same])
    return Judged(right, np.concatenate(wrong), np.concatenate(near))


def chosen(judged: Judged, grid: Sequence[float]) -> float:
    """The largest threshold of the grid at which the precision is RIGHT, and at every smaller one."""
    best = float(grid[0])
    for threshold in grid:
        if judged.precision(threshold) < RIGHT:
            break
        best = float(threshold)
    return best


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints the tables; 1 if the wheels or imagededup cannot be had."""
    given = _parse(arguments)
    program.exit_on_sigterm()
    surroundings, used, code = report.machine(), report.versions(PACKAGES), report.commit()
    try:
        with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
            members, sets = _written(wheels.unpacked(given.wheels or wheels.place(os.environ)), Path(scratch), given)
            paths = [each.path for each in members]
            print(f"{len(paths)} pictures: lookalike ...", file=sys.stderr, flush=True)
            found = [finders.ours(paths, Path(scratch) / "backbones")]
            if not given.alone:
                print("imagededup ...", file=sys.stderr, flush=True)
                directory = given.environment or finders.place(os.environ)
                theirs, version, missing = finders.imagededup(paths, directory, Path(scratch))
                found, used = [*found, *theirs], used | {"imagededup": version}
                for name, reason in missing.items():
                    print(f"imagededup's {name} is left out: {reason}", file=sys.stderr)
    except (Unavailable, StageError, OSError) as error:
        print(f"benchmarks.copies: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    print(report.place(surroundings, used, code))
    print("\n".join(tables(found, members, sets)))
    return 0


def tables(found: Sequence[Finder], members: Sequence[Member], sets: Sequence[str]) -> Iterator[str]:
    """The lines of all tables. `sets`: the name of each member's set."""
    halves = np.asarray([_half(each.whole) for each in members])
    names = np.asarray(sets)
    verdicts: dict[str, dict[str, Judged]] = {}
    thresholds: dict[str, dict[str, float]] = {}
    for finder in found:
        trial = _judged(finder, members, (names == PHOTOGRAPHS) & (halves == 0))
        verdicts[finder.name] = {
            name: _judged(finder, members, (names == name) & (halves == 1)) for name in dict.fromkeys(sets)
        }
        own = chosen(trial, _GRID[finder.root]) if finder.codes is not None else None
        defaults = {} if finder.default is None else {"its default": finder.default}
        thresholds[finder.name] = defaults | ({} if own is None else {"chosen": own})
    used = {name: next(iter(values.values())) for name, values in thresholds.items()}
    for name in dict.fromkeys(sets):
        yield from _by_change(name, {each: verdicts[each][name] for each in verdicts}, used)
    yield from _summary(found, len(members), verdicts, thresholds)
    yield from _steps(verdicts[OURS])


def _judged(finder: Finder, members: Sequence[Member], kept: NDArray[np.bool_]) -> Judged:
    rows = np.flatnonzero(kept)
    return judge(finder, [members[row] for row in rows], rows)


def _by_change(name: str, judged: Mapping[str, Judged], used: Mapping[str, float]) -> Iterator[str]:
    yield from _header(name, f"{OURS}, median distance", *(f"{each}, {used[each]:.4g}" for each in judged))
    for change in CHANGES:
        apart = judged[OURS].right[change]
        median = f"{np.median(apart):.2f}" if len(apart) else ""
        yield _row(change, median, *(f"{each.recall(used[of], change):.2f}" for of, each in judged.items()))
    yield _row("all: recall", "", *(f"{each.recall(used[of]):.3f}" for of, each in judged.items()))
    yield _row("all: precision", "", *(f"{each.precision(used[of]):.3f}" for of, each in judged.items()))


def _summary(
    found: Sequence[Finder],
    pictures: int,
    verdicts: Mapping[str, Mapping[str, Judged]],
    thresholds: Mapping[str, Mapping[str, float]],
) -> Iterator[str]:
    sets = list(verdicts[OURS])
    captions = [f"{what}, {name}" for name in sets for what in ("recall", "precision")]
    yield from _header("program", "threshold", *captions, *_MISTAKES, "pictures/s")
    for finder in found:
        for why, threshold in thresholds[finder.name].items():
            yield _row(
                finder.name,
                f"{threshold:.4g}, {why}",
                *_figures(verdicts[finder.name], threshold),
                f"{pictures / finder.seconds:,.0f}",
            )


def _steps(judged: Mapping[str, Judged]) -> Iterator[str]:
    captions = [f"{what}, {name}" for name in judged for what in ("recall", "precision")]
    yield from _header(f"{OURS}, threshold", *captions, *_MISTAKES)
    for threshold in _STEPS:
        yield _row(f"{threshold:.2f}", *_figures(judged, float(threshold)))


_MISTAKES = ("wrong of a million: parts of a photograph", "unrelated photographs", "drawings")


def _figures(judged: Mapping[str, Judged], threshold: float) -> list[str]:
    figures = [f"{of(threshold):.3f}" for each in judged.values() for of in (each.recall, each.precision)]
    photographs_, drawings_ = judged[PHOTOGRAPHS], judged[DRAWINGS]
    wrong = (
        photographs_.mistakes(threshold, near=True),
        photographs_.mistakes(threshold, near=False),
        drawings_.mistakes(threshold, near=False),
    )
    return [*figures, *(f"{each:,.0f}" for each in wrong)]


def _header(*cells: str) -> list[str]:
    return ["", _row(*cells), f"|{'---|' * len(cells)}"]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _half(whole: str) -> int:
    """0 for the half of the wholes on which thresholds are chosen, 1 for the half on which they are judged."""
    return hashlib.sha256(whole.encode()).digest()[0] % 2


def _written(wheels_: Path, scratch: Path, given: argparse.Namespace) -> tuple[list[Member], list[str]]:
    """The members of all families, and the name of each one's set."""
    bases: dict[str, list[Base]] = {
        PHOTOGRAPHS: list(families.tiles(photographs.every(wheels_))),
        DRAWINGS: list(families.drawn(drawings.emoji(wheels_).images)),
    }
    bases = {name: each[: given.originals] for name, each in bases.items()}
    directory = scratch / "pictures"
    directory.mkdir()
    members = families.write([base for each in bases.values() for base in each], directory)
    names = [name for name, each in bases.items() for _ in each]
    return members, [names[each.family] for each in members]


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.copies",
        description="Measures how many changed copies of pictures are found as copies, and how many other pictures.",
    )
    parser.add_argument("--originals", type=program.positive, metavar="N", help="at most so many of each set")
    parser.add_argument("--alone", action="store_true", help="without imagededup")
    parser.add_argument(
        "--environment",
        type=Path,
        metavar="DIR",
        help=f"imagededup's environment, created if missing; by default ${finders.VARIABLE} or the user's cache",
    )
    parser.add_argument(
        "--wheels",
        type=Path,
        metavar="DIR",
        help=f"the unpacked wheels, downloaded if missing; by default ${wheels.VARIABLE} or the user's cache",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
