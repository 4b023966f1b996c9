"""How fast localpachd is (`python -m benchmarks.localpachd --help`). Measures servers of its own, through gRPC only."""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import datums, files, memory, report
from benchmarks.report import Result

PACKAGES = ("grpcio", "protobuf", "python-pachyderm")

SECTIONS: dict[str, Callable[[argparse.Namespace], Result]] = {
    "put": lambda given: files.measure_put(given.put, given.rounds),
    "list": lambda given: files.measure_list(given.list, given.rounds),
    "batched": lambda given: datums.measure_batched(given.batched, given.rounds),
    "unbatched": lambda given: datums.measure_unbatched(given.unbatched, given.rounds),
    "jobs": lambda given: datums.measure_jobs(sorted(given.jobs), given.rounds),
    "history": lambda given: memory.measure_history(given.history),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures what the arguments (the command line's, if none are given) name, and prints the table."""
    parser = _parser()
    given = parser.parse_args(arguments)
    for unknown in sorted({*given.sections} - {*SECTIONS}):
        parser.error(f"{unknown} is none of {', '.join(SECTIONS)}")
    # Whoever ends this ends the servers, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    surroundings, used, code = report.machine(), report.versions(PACKAGES), report.commit()
    results = []
    for name in given.sections or SECTIONS:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        results.append(SECTIONS[name](given))
    lines = [line for result in results for line in result.lines]
    print(report.markdown(lines, surroundings, used, code) if given.markdown else report.plain(lines))
    if given.json:
        report.write_json(given.json, [row for each in results for row in each.rows], surroundings, used, code)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.localpachd",
        description="Measures localpachd beside bare lower bounds, in turns, the best of several rounds each.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"{', '.join(SECTIONS)}; without any, all")
    parser.add_argument("--rounds", type=_positive, default=2, metavar="N", help="rounds of each measurement")
    parser.add_argument("--put", type=_positive, default=10_000, metavar="N", help="files that are put")
    parser.add_argument("--list", type=_positive, default=30_000, metavar="N", help="files that are listed")
    parser.add_argument("--batched", type=_positive, default=2_000, metavar="N", help="datums of a batched job")
    parser.add_argument("--unbatched", type=_positive, default=300, metavar="N", help="datums of an unbatched job")
    parser.add_argument(
        "--jobs", type=_positive, nargs="+", default=[1_000, 10_000], metavar="N", help="datums of the skipping jobs"
    )
    parser.add_argument("--history", type=_positive, default=300, metavar="N", help="commits of the history")
    parser.add_argument("--markdown", action="store_true", help="print the table as docs/benchmarks.md has it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the measurements to a file, too")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
