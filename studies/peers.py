"""lookalike beside DVC and Snakemake: adding one picture to a library (`python -m studies.peers --help`).

The same stages, pictures, queries and backbone on the same machine, in turns; all answers are compared.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from benchmarks.kit import program
from benchmarks.kit.program import positive
from benchmarks.kit.report import Line, Result, Row
from pipelines.errors import LookalikeError
from pipelines.library import backbone_push
from studies import racing
from studies.kit import environment
from studies.kit.environment import Tool, Unavailable
from studies.racing import ACTS, OURS, Found, Make
from studies.workflows import Dvc, DvcInBatches, Lookalike, Snakemake

PACKAGES = ("numpy", "tensorflow", "keras", "grpcio")
BACKBONE = "efficientnet-lite0"
SECTIONS = {
    "first": "a first run, from nothing",
    "add": "adding one picture",
    "again": "a run with nothing changed",
    "remove": "deleting one picture",
    "disk": "on disk at the end",
}
STEPS = {OURS: "datums", "dvc": "stages", "dvc in batches": "stages", "snakemake": "jobs"}

_FEWEST = 50  # so that hardly any segment is empty


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures the sections that the arguments (the command line's by default) name, and prints the table."""
    given = program.parse(_parser(), tuple(SECTIONS), arguments)
    program.exit_on_sigterm()
    try:
        tools = environment.tools(given.environment or environment.place(os.environ))
    except Unavailable as missing:
        print(f"studies.peers: DVC and Snakemake are left out: {missing}", file=sys.stderr)
        tools = {}
    try:
        with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
            inputs = Path(scratch) / "inputs"
            racing.write_inputs(inputs, given.pictures, given.rounds)
            (inputs / "models").mkdir()
            backbone_push.make(BACKBONE, [], inputs / "models")
            acts = [act for act in ACTS if act in given.sections]
            found = cache(lambda: racing.race(makers(inputs, tools), inputs, given.rounds, acts))
            last = given.sections[-1]
            program.run(given, lambda each: result(each, found(), labels(tools), each == last), PACKAGES, beside="peer")
    except (LookalikeError, RuntimeError, OSError) as error:
        print(f"studies.peers: {error}", file=sys.stderr)
        return 1
    return 0


def makers(inputs: Path, tools: Mapping[str, Tool]) -> dict[str, Make]:
    """The workflows to race, ours first."""
    found: dict[str, Make] = {OURS: partial(Lookalike, inputs)}
    if "dvc" in tools:
        found["dvc"] = partial(Dvc, inputs, tool=tools["dvc"])
        found["dvc in batches"] = partial(DvcInBatches, inputs, tool=tools["dvc"])
    if "snakemake" in tools:
        found["snakemake"] = partial(Snakemake, inputs, tool=tools["snakemake"])
    return found


def labels(tools: Mapping[str, Tool]) -> dict[str, str]:
    """The names of the peers in the table."""
    versions = {name: tool.version for name, tool in tools.items()}
    names = {"dvc": "DVC {dvc}", "dvc in batches": "DVC {dvc} in batches", "snakemake": "Snakemake {snakemake}"}
    return {name: text.format(**versions) for name, text in names.items()} if tools else {}


def result(section: str, found: Found, labels: Mapping[str, str], last: bool) -> Result:
    """The rows and lines of one section; those of the last also say whether all answers were the same. A row's rate is
    steps (datums, stages or jobs) a second; rows of disk hold MiB in place of peak memory."""
    what = SECTIONS[section]
    agreement = _agreement(found, labels) if last else []
    if section == "disk":
        sizes = {name: f"{size:,.1f} MiB" for name, size in found.disk.items()}
        rows = tuple(Row(section, name, peak_mib=round(size, 1)) for name, size in found.disk.items())
        return Result(rows, (*_beside(what, sizes, found.disk, labels), *agreement))
    seconds = {name: taken for (act, name), taken in found.seconds.items() if act == section}
    steps = {name: found.steps[section, name] for name in seconds}
    said = {name: f"{taken:.2f} s, {steps[name]:,} {STEPS[name]}" for name, taken in seconds.items()}
    rows = tuple(Row(section, name, taken, steps[name] / taken) for name, taken in seconds.items())
    return Result(rows, (*_beside(what, said, seconds, labels), *agreement))


def _beside(what: str, said: Mapping[str, str], values: Mapping[str, float], labels: Mapping[str, str]) -> list[Line]:
    """A line for each peer, or one for ours alone if there are no peers."""
    lines = [
        Line(f"{what}, beside {label}", said[OURS], said[name], f"{values[OURS] / values[name]:.2f}")
        for name, label in labels.items()
        if name in said
    ]
    return lines or [Line(what, said[OURS])]


def _agreement(found: Found, labels: Mapping[str, str]) -> list[Line]:
    """Whether the peers' answers were ours, or why a peer failed."""
    goal, lines = "the same ids and distances", []
    for name, label in labels.items():
        if name in found.failed:
            why = found.failed[name].strip().splitlines()
            lines.append(Line(f"answers of {label}", "", f"failed: {why[-1]}", "", goal, "no"))
        else:
            after = found.differing.get(name)
            said = f"different after: {SECTIONS[after]}" if after else "the same after every step"
            lines.append(Line(f"answers of {label}", "", said, "", goal, "no" if after else "yes"))
    return lines


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m studies.peers",
        description="Measures adding one picture to a library with lookalike, with DVC and with Snakemake, in turns.",
    )
    parser.add_argument(
        "--rounds", type=positive, default=2, metavar="N", help="rounds of everything except the first run"
    )
    parser.add_argument("--pictures", type=_enough, default=1200, metavar="N", help="pictures of the library")
    parser.add_argument(
        "--environment",
        type=Path,
        metavar="DIR",
        help="the environment of DVC and Snakemake, created if missing; "
        f"by default ${environment.VARIABLE} or the user's cache",
    )
    return parser


def _enough(text: str) -> int:
    if not text.isdecimal() or int(text) < _FEWEST:
        raise argparse.ArgumentTypeError(f"{text} is not a number from {_FEWEST}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
