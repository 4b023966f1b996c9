"""All pairs of copies of a library, on an index that is made: `python -m studies.neighbours --help`.

The stage runs on plain directories, in a process of its own, and beside it, on the same index, that of another checkout
if one is named. The pairs of both are compared, byte by byte.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.kit import program
from benchmarks.kit.madeindex import SEGMENTS, MadeIndex
from benchmarks.kit.program import positive
from benchmarks.kit.report import Line, Result, Row
from pipelines.specifications import optional_specs, pipeline_specs

PACKAGES = ("numpy", "pyarrow", "pillow")
SPAN = 1_000
"""Of so many pictures one is of another size, so that it may be a copy of those whose hashes and vectors agree."""

_HERE = Path(__file__).parents[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures a library of the size that the arguments (the command line's by default) name, and prints the table."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.neighbours",
        description="Measures how long all pairs of copies of a made index take, and those of one more picture.",
    )
    parser.add_argument("--pictures", type=positive, default=10_000, metavar="N", help="size of the library")
    parser.add_argument(
        "--left", type=int, choices=range(1, 17), default=16, metavar="N", help="left segments, of 16, to compute"
    )
    parser.add_argument("--before", type=Path, metavar="DIR", help="a checkout of an earlier version, to run beside")
    given = program.parse(parser, (), arguments)
    given.sections = [f"{given.pictures:,} pictures"]
    program.exit_on_sigterm()
    program.run(given, lambda name: measure(name, given.pictures, given.left, given.before), PACKAGES)
    return 0


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run took: datums, seconds of the processor, and peak memory in MiB; and its files by path."""

    datums: int
    seconds: float
    peak: float
    files: dict[str, bytes]

    @property
    def pairs(self) -> dict[str, bytes]:
        """The files of pairs alone."""
        return {path: content for path, content in self.files.items() if path.startswith("pairs/")}


def measure(name: str, pictures: int, left: int, before: Path | None) -> Result:
    """Computes the pairs of the first `left` segments with all others and, if these are all, what one more picture
    changes."""
    index = MadeIndex(pictures, resized=SPAN)
    checkouts = {"ours": _HERE} | ({} if before is None else {"before": before})
    rows, lines = [], []
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        place = Path(scratch, "index")
        for segment in SEGMENTS:
            index.write(place, segment)
        steps = (f"{left} of 16 segments with all", 0), ("one more picture", 1)
        for what, more in steps if left == len(SEGMENTS) else steps[:1]:
            if more:
                index.write(place, "0", more=more)
            wanted = [(one, other) for one in SEGMENTS for other in SEGMENTS if _is_wanted(one, other, left, more)]
            spent = {each: _run(checkout, place, wanted, Path(scratch)) for each, checkout in checkouts.items()}
            rows += [Row(name, f"{what}, {each}", of.seconds, peak_mib=of.peak) for each, of in spent.items()]
            ours, theirs = spent["ours"], spent.get("before", spent["ours"])
            lines.append(Line(f"{what}: processor", f"{ours.seconds:,.1f} s", f"{theirs.seconds:,.1f} s"))
            lines.append(Line(f"{what}: datums", str(ours.datums), str(theirs.datums)))
            lines.append(Line(f"{what}: peak memory", f"{ours.peak:,.0f} MiB", f"{theirs.peak:,.0f} MiB"))
            written = [f"{sum(map(len, each.files.values())) / 1e6:,.1f} MB" for each in (ours, theirs)]
            lines.append(Line(f"{what}: written", *written))
            same = "all equal" if ours.pairs == theirs.pairs else "not the same"
            lines.append(Line(f"{what}: files of pairs", f"{len(ours.pairs)}", f"{len(theirs.pairs)}", met=same))
    return Result(tuple(rows), tuple(lines))


def _is_wanted(one: str, other: str, left: int, more: int) -> bool:
    """Whether a pair of segments is computed: of the first ones on the left or, with one more picture in the first, of
    that with any other on either side."""
    return "0" in (one, other) if more else one in SEGMENTS[:left]


def _run(checkout: Path, index: Path, wanted: Sequence[tuple[str, str]], scratch: Path) -> Spent:
    """Runs the stage of a checkout, with the variables of its specification."""
    with tempfile.TemporaryDirectory(dir=scratch) as made:
        out, datums = Path(made, "out"), Path(made, "datums")
        sides = {each: {"path": str(index / each), "repo_path": each, "commit": "c"} for each in SEGMENTS}
        stated = [{"inputs": {"left": sides[one], "right": sides[other]}, "out": str(out)} for one, other in wanted]
        datums.write_text("".join(json.dumps(each) + "\n" for each in stated))
        command = [sys.executable, "-P", "-m", "stages.neighbours", "--datums", str(datums)]
        environment = {**os.environ, **_environment(checkout), "PYTHONPATH": str(checkout), "CUDA_VISIBLE_DEVICES": ""}
        process = subprocess.Popen(command, cwd=checkout, env=environment, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"the stage of {checkout} ended with {process.returncode}")
        files = {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}
        return Spent(len(wanted), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, files)


def _environment(checkout: Path) -> dict[str, str]:
    found = {
        spec.name: dict(spec.request().transform.env)
        for spec in optional_specs.required_specs(checkout / pipeline_specs.SHIPPED_SPECS.name, "duplicates")
    }
    return {name: value for name, value in found["neighbours"].items() if name != "LOOKALIKE_STAGE"}


if __name__ == "__main__":
    sys.exit(main())
