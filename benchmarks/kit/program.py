"""The part that all benchmark programs share: choosing sections, printing and writing the results. Knows no
benchmark."""

import argparse
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.kit import report
from benchmarks.kit.report import Result

Surroundings = Mapping[str, Any]


def positive(text: str) -> int:
    """Parses an option's number, above 0."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return int(text)


def exit_on_sigterm() -> None:
    """Makes SIGTERM end the program as an exception, so that it stops its servers and deletes its files."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def parse(
    parser: argparse.ArgumentParser, sections: Sequence[str], arguments: Sequence[str] | None
) -> argparse.Namespace:
    """Parses the arguments (the command line's by default), with the sections that they name, by default all, and the
    options that every benchmark has. If `sections` is empty the caller fills in `given.sections`."""
    parser.formatter_class = argparse.ArgumentDefaultsHelpFormatter
    if sections:
        parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"{', '.join(sections)}; by default all")
    parser.add_argument("--markdown", action="store_true", help="print the table in the format of docs/benchmarks.md")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the measurements to a file")
    given = parser.parse_args(arguments)
    if sections:
        choose(parser, given, sections)
    return given


def choose(parser: argparse.ArgumentParser, given: argparse.Namespace, sections: Sequence[str]) -> None:
    """Makes the sections that the arguments name all of them if they name none, and refuses unknown ones."""
    for unknown in sorted({*given.sections} - {*sections}):
        parser.error(f"{unknown} is not a section: choose from {', '.join(sections)}")
    given.sections = given.sections or list(sections)


def run(
    given: argparse.Namespace,
    measure: Callable[[str], Result],
    packages: Sequence[str],
    also: Surroundings | None = None,
    beside: str = report.BOUND,
) -> tuple[list[report.Row], Surroundings]:
    """Measures the chosen sections, prints the table and writes the file. `also` are further facts about the machine;
    `beside` is the caption of the comparison. Returns the measurements, and the machine as it was before them."""
    surroundings = {**report.machine(), **(also or {})}
    used, code = report.versions(packages), report.commit()
    results = []
    for name in given.sections:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        results.append(measure(name))
    lines = [line for result in results for line in result.lines]
    rows = [row for result in results for row in result.rows]
    print(report.markdown(lines, surroundings, used, code, beside) if given.markdown else report.plain(lines, beside))
    if given.json:
        report.write_json(given.json, rows, surroundings, used, code)
    return rows, surroundings
