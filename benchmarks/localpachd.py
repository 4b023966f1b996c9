"""The speed of localpachd (`python -m benchmarks.localpachd --help`), measured on servers of its own through gRPC."""

import argparse
import sys
from collections.abc import Callable, Sequence

from benchmarks.kit import program
from benchmarks.kit.program import positive
from benchmarks.kit.report import Result
from benchmarks.server import counted, datums, durability, files, holding, lines, memory, scale

PACKAGES = ("grpcio", "protobuf", "python-pachyderm")

SECTIONS: dict[str, Callable[[argparse.Namespace], Result]] = {
    "put": lambda given: files.measure_put(given.put, given.rounds),
    "list": lambda given: files.measure_list(given.list, given.rounds),
    "batched": lambda given: datums.measure_batched(given.batched, given.rounds),
    "unbatched": lambda given: datums.measure_unbatched(given.unbatched, given.rounds),
    "jobs": lambda given: datums.measure_jobs(sorted(given.jobs), given.rounds),
    "logs": lambda given: lines.measure_logs(given.logs, given.rounds),
    "history": lambda given: memory.measure_history(given.history),
    "steps": lambda given: durability.measure_steps(given.steps, given.rounds),
    "read": lambda given: durability.measure_read(given.read, given.rounds),
    "held": lambda given: holding.measure_held(*given.held),
    "scale": lambda given: scale.measure_scale(given.rounds, *given.scale),
    "calls": lambda given: counted.measure_calls(given.calls, given.rounds),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures the sections that the arguments (the command line's by default) name, and prints the table."""
    given = program.parse(_parser(), tuple(SECTIONS), arguments)
    program.exit_on_sigterm()
    program.run(given, lambda name: SECTIONS[name](given), PACKAGES)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.localpachd",
        description="Measures localpachd beside bare lower bounds, in turns; the best of several rounds counts.",
    )
    parser.add_argument("--rounds", type=positive, default=2, metavar="N", help="rounds of each measurement")
    parser.add_argument("--put", type=positive, default=10_000, metavar="N", help="files to put")
    parser.add_argument("--list", type=positive, default=30_000, metavar="N", help="files to list")
    parser.add_argument("--batched", type=positive, default=2_000, metavar="N", help="datums of the batched job")
    parser.add_argument("--unbatched", type=positive, default=300, metavar="N", help="datums of the unbatched job")
    parser.add_argument(
        "--jobs",
        type=positive,
        nargs="+",
        default=[1_000, 10_000],
        metavar="N",
        help="datums of the jobs that skip all but one",
    )
    parser.add_argument("--logs", type=positive, default=50_000, metavar="N", help="lines of the log")
    parser.add_argument("--history", type=positive, default=300, metavar="N", help="commits of the history")
    parser.add_argument("--steps", type=positive, default=480, metavar="N", help="steps to make durable")
    parser.add_argument("--calls", type=positive, default=2_000, metavar="N", help="calls with and without metrics")
    parser.add_argument("--read", type=positive, default=256, metavar="N", help="MiB of the file to read")
    parser.add_argument(
        "--held",
        type=positive,
        nargs=3,
        default=[300, 2_000, 128],
        metavar="N",
        help="downloads that nobody reads, calls that wait, logs of which one line is read",
    )
    parser.add_argument(
        "--scale",
        type=positive,
        nargs=4,
        default=[1_000, 50, 1_000, 10_000],
        metavar="N",
        help="pipelines, the depth of a DAG, job sets, branches; each above 3",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
