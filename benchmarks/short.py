"""The benchmarks in short, each figure beside the committed one of the same class of machine:
`make bench ARGS=--short`, or `python -m benchmarks.short --help`.

Everything is small and measured in several passes, so that noise shows as the range of the passes.
"""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import committed
from benchmarks.kit import program, report
from benchmarks.kit.program import positive
from benchmarks.kit.report import Result, Row
from benchmarks.races import coldstart, preprocessing, searching
from benchmarks.server import datums, durability, files, lines

PASSES = 3

SECTIONS: dict[str, Callable[[], Result]] = {
    "put": lambda: files.measure_put(2_000, 1),
    "list": lambda: files.measure_list(3_000, 1),
    "batched": lambda: datums.measure_batched(500, 1),
    "unbatched": lambda: datums.measure_unbatched(60, 1),
    "jobs": lambda: datums.measure_jobs([1_000], 1),
    "logs": lambda: lines.measure_logs(5_000, 1),
    "steps": lambda: durability.measure_steps(160, 1),
    "read": lambda: durability.measure_read(64, 1),
    "preprocess": lambda: preprocessing.measure(1),
    "cold": lambda: coldstart.measure(1),
    "knn": lambda: searching.measure(5_000, 1, sklearn=False),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints the table and the changes; 1 if something got slower."""
    given = _given(arguments)
    program.exit_on_sigterm()
    machine, code = report.machine(), report.commit()
    kind = committed.machine_class(machine)
    try:
        kept, said = committed.read(given.committed, kind)
    except ValueError as error:
        print(f"benchmarks.short: {error}", file=sys.stderr)
        return 2
    try:
        now = committed.figures(
            [_measured(given.sections, number, given.passes) for number in range(1, given.passes + 1)]
        )
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    print(committed.table(now, kept))
    print(f"\n{said}\nnow: {kind}, load {machine['load']} at the start")
    if given.keep:
        committed.keep(given.committed, kind, now, machine, code)
    changed = {name: committed.verdict(now[name], kept[name]) for name in now if name in kept}
    slower = [name for name, word in changed.items() if word == "slower"]
    print(f"slower by more than noise: {'; '.join(slower) or 'nothing'}")
    return 1 if slower else 0


def _measured(sections: Sequence[str], number: int, passes: int) -> list[Row]:
    rows: list[Row] = []
    for name in sections:
        print(f"pass {number} of {passes}: {name} ...", file=sys.stderr, flush=True)
        rows += SECTIONS[name]().rows
    return rows


def _given(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.short",
        description="Measures small amounts in several passes, and says what got slower than the committed figures.",
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"{', '.join(SECTIONS)}; by default all")
    parser.add_argument("--passes", type=positive, default=PASSES, metavar="N", help="passes over all sections")
    parser.add_argument("--keep", action="store_true", help="write the figures as those of this class of machine")
    parser.add_argument("--committed", type=Path, default=committed.FILE, metavar="FILE", help="the committed figures")
    given = parser.parse_args(arguments)
    program.choose(parser, given, tuple(SECTIONS))
    return given


if __name__ == "__main__":
    sys.exit(main())
