"""The precision and recall of finding copies of pictures, beside imagededup: `python -m benchmarks.copies --help`."""

import argparse
import hashlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import drawings, families, finders, photographs, program, report, wheels
from benchmarks.environment import Unavailable
from benchmarks.families import CHANGES, Base, Member
from benchmarks.finders import HASHES, OURS, VECTORS, Finder
from benchmarks.verdicts import DRAWINGS, PHOTOGRAPHS, RIGHT, Judged, chosen, judge, looked_at
from stages.contract import StageError

PACKAGES = ("numpy", "pillow", "tensorflow", "keras", "scikit-image")
_SPEC = Path(__file__).parents[1] / "specs" / "duplicates" / "neighbours.json"
_DISTANCES = np.round(np.arange(0.2, 1.11, 0.1), 1)
_BITS = np.arange(0.0, 33.0, 2.0)  # hashes of 32 ones each differ in an even number
_GRID = {True: np.round(np.arange(0.0, 1.2, 0.01), 2), False: _BITS}  # by Finder.root
_SHOWN = 4, 8, 10, 12, 14, 16  # bits in the table of both


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
            found = list(finders.ours(paths, Path(scratch) / "backbones"))
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
    print("\n".join(tables(found, members, sets, parameters())))
    return 0


def tables(
    found: Sequence[Finder], members: Sequence[Member], sets: Sequence[str], parameters: tuple[float, float]
) -> Iterator[str]:
    """The lines of all tables. found: the vectors, the hashes and others. `sets`: the name of each member's set.
    parameters: THRESHOLD and HASH_BITS, at which both together are judged."""
    halves = np.asarray([_half(each.whole) for each in members])
    names = np.asarray(sets)
    distance, bits = parameters
    trials, verdicts = (
        {
            finder.name: {name: _judged(finder, members, (names == name) & (halves == half)) for name in RIGHT}
            for finder in found
        }
        for half in (0, 1)
    )
    verdicts = {OURS: _both(verdicts, distance)} | verdicts
    thresholds = {OURS: {f"{distance:.4g} and {bits:.4g}": bits}}
    for finder in found:
        own = {} if finder.codes is None else {"chosen": chosen(trials[finder.name], _GRID[finder.root])}
        values = own if finder.default is None else {"its default": finder.default} | own
        thresholds[finder.name] = {f"{value:.4g}, {why}": value for why, value in values.items()}
    used = {name: next(iter(values.items())) for name, values in thresholds.items()}
    for name in RIGHT:
        medians = verdicts[VECTORS][name], verdicts[HASHES][name]
        yield from _by_change(name, medians, {each: verdicts[each][name] for each in verdicts}, used)
    yield from _summary(verdicts, thresholds)
    yield from _grid(trials)


def _judged(finder: Finder, members: Sequence[Member], kept: NDArray[np.bool_]) -> Judged:
    rows = np.flatnonzero(kept)
    return judge(finder, [members[row] for row in rows], rows)


def _both(verdicts: Mapping[str, Mapping[str, Judged]], distance: float) -> dict[str, Judged]:
    """The verdicts on the hashes of pairs within the distance, by set."""
    vectors = verdicts[VECTORS]
    return {name: each.within(vectors[name], distance) for name, each in verdicts[HASHES].items()}


def _by_change(
    name: str,
    medians: Sequence[Judged],
    judged: Mapping[str, Judged],
    used: Mapping[str, tuple[str, float]],
) -> Iterator[str]:
    columns = [(each, used[of][1]) for of, each in judged.items()]
    captions = (f"{of}, {text.partition(',')[0]}" for of, (text, _) in used.items())
    yield from _header(name, "median distance", "median bits", *captions)
    for change in CHANGES:
        apart = (each.right[change] for each in medians)
        middle = (
            f"{np.median(each):.{digits}f}" if len(each) else "" for each, digits in zip(apart, (2, 0), strict=True)
        )
        yield _row(change, *middle, *(f"{each.recall(at, change):.2f}" for each, at in columns))
    yield _row("all: recall", "", "", *(f"{each.recall(at):.3f}" for each, at in columns))
    yield _row("all: precision", "", "", *(f"{each.precision(at):.3f}" for each, at in columns))


def _summary(
    verdicts: Mapping[str, Mapping[str, Judged]], thresholds: Mapping[str, Mapping[str, float]]
) -> Iterator[str]:
    captions = [f"{what}, {name}" for name in RIGHT for what in ("recall", "precision")]
    yield from _header("program", "threshold", *captions, *_MISTAKES)
    for name, values in thresholds.items():
        for text, threshold in values.items():
            yield _row(name, text, *_figures(verdicts[name], threshold))


def _grid(trials: Mapping[str, Mapping[str, Judged]]) -> Iterator[str]:
    """The half on which thresholds are chosen: recall and precision of photographs, and precision of drawings."""
    yield from _header("chosen half: within", "unrelated of a million", *(f"{each} bits" for each in _SHOWN))
    for distance in _DISTANCES:
        both = _both(trials, float(distance))
        cells = (
            f"{both[PHOTOGRAPHS].recall(each):.2f}, {both[PHOTOGRAPHS].precision(each):.3f}; "
            f"{both[DRAWINGS].precision(each):.2f}"
            for each in _SHOWN
        )
        within = trials[VECTORS][PHOTOGRAPHS].mistakes(float(distance), near=False)
        yield _row(f"{distance:.1f}", f"{within:,.0f}", *cells)
    distance = looked_at(trials[VECTORS][PHOTOGRAPHS], _DISTANCES)
    yield f"\nBy the rule: THRESHOLD={distance:.4g} HASH_BITS={chosen(_both(trials, distance), _BITS):.0f}"


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


def parameters() -> tuple[float, float]:
    """THRESHOLD and HASH_BITS of our specification of neighbours."""
    environment = json.loads(_SPEC.read_text())["transform"]["env"]
    return float(environment["THRESHOLD"]), float(environment["HASH_BITS"])


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
