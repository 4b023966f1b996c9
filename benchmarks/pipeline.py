"""The whole pipeline, from pictures to sheets, at several sizes: `python -m benchmarks.pipeline --help`.

Each size has a localpachd of its own. Its state, the journal of what is done and the results are in a directory: a run
that was interrupted goes on there.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from benchmarks.kit import program, report
from benchmarks.kit.plots import curves
from benchmarks.kit.program import positive
from benchmarks.kit.report import Result
from benchmarks.races.backbones import RESNET50, Backbone, random_resnet50
from benchmarks.whole import bysize, figures, runs
from benchmarks.whole.changes import CHANGES
from benchmarks.whole.runs import SWAP, Size, Whole
from pipelines.errors import LookalikeError

PACKAGES = ("numpy", "tensorflow", "keras", "grpcio", "protobuf", "python-pachyderm")
BACKBONES = ("efficientnet-lite0", RESNET50)
SIDES = (96, 224)
"""The original experiment's side of pictures in pixels, and that of lookalike's own specifications."""

_PLACE = "lookalike-pipeline"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures the sizes that the arguments (the command line's by default) name, and prints the table."""
    given = program.parse(_parser(), (), arguments)
    sizes = [Size(pictures, side) for side in dict.fromkeys(given.image_size) for pictures in sorted({*given.pictures})]
    by_name = {str(size): size for size in sizes}
    given.sections = list(by_name)
    program.exit_on_sigterm()
    done: dict[Size, Whole] = {}
    try:
        _check_room(sizes, given.changes, given.directory)
        other = given.other or next(each for each in BACKBONES if each != given.model)

        def measure(name: str) -> Result:
            size = by_name[name]
            backbone = _made(given.model, size.side, given.directory)
            swapped = _made(other, size.side, given.directory) if SWAP in given.changes else backbone
            done[size] = runs.measure(size, _place(size, given.directory), backbone, swapped, given.changes)
            return figures.result(done[size])

        _, surroundings = program.run(given, measure, PACKAGES)
    except (LookalikeError, RuntimeError) as error:
        print(f"benchmarks.pipeline: {error}", file=sys.stderr)
        return 1
    place = report.place(surroundings, report.versions(PACKAGES), report.commit())
    (given.directory / "table.md").write_text(f"{place}\n\n{bysize.tables(done)}")
    (given.directory / "growth.svg").write_text(curves(figures.panels(done), surroundings))
    for size in sizes:
        shutil.rmtree(_place(size, given.directory))
    print(f"wrote table.md and growth.svg to {given.directory}", file=sys.stderr)
    return 0


def _place(size: Size, directory: Path) -> Path:
    return directory / f"{size.pictures}-{size.side}"


def _made(source: str, side: int, directory: Path) -> Path:
    """The directory of a backbone for pictures of this side, which is made if it is missing. Raises LookalikeError or
    RuntimeError if it cannot be made."""
    made = directory / f"{Path(source).stem}-{side}"
    if not made.is_dir():
        print(f" making the backbone {source} ...", file=sys.stderr, flush=True)
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory, prefix="new-") as scratch:
            backbone = random_resnet50(Path(scratch)) if source == RESNET50 else Backbone(source)
            backbone.write(Path(scratch) / "backbone", side)
            (Path(scratch) / "backbone").rename(made)
    return made


def _check_room(sizes: Sequence[Size], changes: Collection[str], directory: Path) -> None:
    """Raises RuntimeError unless the disk has room for each run that has not begun, one after another."""
    begun = {size for size in sizes if (_place(size, directory) / "journal.json").exists()}
    rooms = [runs.room(size.pictures, size.side, changes) for size in sizes if size not in begun]
    wanted = max(rooms, default=0)
    there = next(each for each in (directory.absolute(), *directory.absolute().parents) if each.exists())
    free = shutil.disk_usage(there).free
    if free < wanted:
        raise RuntimeError(
            f"{max(sizes)} need {wanted / 1e9:,.1f} GB in {directory}, where {free / 1e9:,.1f} GB are free: free "
            "some, name another place with --directory, or give smaller --pictures or fewer --changes"
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pipeline",
        description="Measures the whole pipeline on localpachd: libraries of several sizes, changes of them, storage.",
    )
    sizes = "sizes of the libraries, a tenth of each queries, at most 1,000; at least 60"
    parser.add_argument("--pictures", type=_sixty, nargs="+", default=[1_000, 3_000], metavar="N", help=sizes)
    sides = "sides of the pictures in pixels, which are measured one after another"
    parser.add_argument("--image-size", type=positive, nargs="+", default=list(SIDES), metavar="PIXELS", help=sides)
    named = f"{' or '.join(BACKBONES)}, or a .keras file; {RESNET50} gets random weights"
    parser.add_argument("--model", default=BACKBONES[0], metavar="NAME|FILE", help=named)
    parser.add_argument(
        "--other", metavar="NAME|FILE", help="the backbone to swap it with; by default another named one"
    )
    changes = (*CHANGES, SWAP)
    parser.add_argument("--changes", nargs="*", choices=changes, default=list(CHANGES), help="which changes to make")
    kept = "the directory of the state, from which an interrupted run goes on, and of table.md and growth.svg"
    place = Path(tempfile.gettempdir()) / _PLACE
    parser.add_argument("--directory", type=Path, default=place, metavar="DIR", help=kept)
    return parser


def _sixty(text: str) -> int:
    number = positive(text)
    if number < 60:
        raise argparse.ArgumentTypeError(f"{text} is too few: at least 60")
    return number


if __name__ == "__main__":
    sys.exit(main())
