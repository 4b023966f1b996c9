"""The original experiment on a small scale, from pictures to the sheet: `python -m studies.experiment --help`.

The stages run one after the other as the pipelines run them; then every searcher searches the resulting vectors, and
all answers are compared with the sheet.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks import stages
from benchmarks.kit import program, segments
from benchmarks.kit.contenders import Contender
from benchmarks.kit.program import positive
from benchmarks.kit.report import Line, Result, Row, timed
from benchmarks.races import features, pictures, searching
from benchmarks.races.backbones import Backbone
from pipelines.errors import LookalikeError
from pipelines.library.datasets.stl10 import ENTRY, Stl10Split
from stages import index, partition, render, search
from stages.datum.contract import DatumInput
from stages.files import thumbnail_files, vector_files
from stages.files.tables.index_table import TABLE, IndexTable
from stages.quality.entry_answers import EntryAnswers
from stages.record import entry_paths

OWN = Backbone("efficientnet-lite0")
"""The default backbone of the pipelines, which needs no download."""

_K = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures the pictures that the arguments (the command line's by default) name, and prints the table; 1 if
    something requested is not available."""
    given = program.parse(_parser(), (), arguments)
    program.exit_on_sigterm()
    backbone = stages.backbone(given) or OWN
    try:
        if given.vectors is not None:
            write_vectors(given.vectors, given.pictures, backbone, given.data_dir)
            return 0
        given.sections = ["sheet"]
        asked = given.pictures, given.rounds, backbone, given.data_dir, given.sheet, not given.without_sklearn
        program.run(given, lambda _: measure(*asked), stages.PACKAGES)
    except (LookalikeError, RuntimeError) as error:
        print(f"studies.experiment: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m studies.experiment", description="Measures the original experiment, from pictures to the sheet."
    )
    add = parser.add_argument
    add("--rounds", type=positive, default=3, metavar="N", help="rounds of each search")
    add("--pictures", type=stages.size, default=2_000, metavar="N", help="a tenth of them queries; at least 1,000")
    add("--sheet", type=Path, metavar="FILE", help="keep the sheet of five queries and their nearest (PNG)")
    add(
        "--vectors",
        type=Path,
        metavar="DIR",
        help="only write the vectors there, for `make stages ARGS=knn`",
    )
    add("--data-dir", type=stages.data_dir, metavar="DIR", help="STL-10's files, for pictures in place of made ones")
    stages.add_backbone(parser, OWN.source)
    add("--without-sklearn", action="store_true", help="leave out scikit-learn, the slowest by far")
    return parser


def measure(
    count: int,
    rounds: int,
    backbone: Backbone = OWN,
    data_dir: Path | None = None,
    sheet: Path | None = None,
    sklearn: bool = True,
) -> Result:
    """Searches nine tenths of `count` pictures for the others. `sheet` is a PNG file for five of these with their three
    nearest."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        run = _Stages(Path(scratch), pictures.split(Path(scratch), count, data_dir))
        taken = {}
        for name, work in run.works(backbone).items():
            print(f"  {name} ...", file=sys.stderr, flush=True)
            taken[name] = timed(work)
        written = run.write_vectors()
        _keep(run.answers(), run.ids(), written / "pipeline.npz")
        compared = searching.compare(written, "the pictures' vectors", rounds, sklearn, ["pipeline"])
        drawn = run.sheet.read_bytes()
        if sheet is not None:
            sheet.write_bytes(drawn)
    asked = count // 10
    what = f"{asked:,} pictures searched for among {count - asked:,}, {backbone.source}"
    rows = [Row("end to end", name, seconds, count / seconds) for name, seconds in taken.items()]
    said = ", ".join(f"{name} {seconds:.1f}" for name, seconds in taken.items())
    lines = [
        Line(what, f"{sum(taken.values()):.1f} s: {said}"),
        Line("its sheet of 5 × 4 pictures", str(sheet) if sheet is not None else "drawn; --sheet FILE keeps it"),
    ]
    return Result((*rows, *compared.rows), (*lines, *compared.lines))


def write_vectors(directory: Path, count: int, backbone: Backbone = OWN, data_dir: Path | None = None) -> None:
    """Writes the vectors of `count` pictures to library.npy and queries.npy in a directory, a tenth of them queries."""
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
        run = _Stages(Path(scratch), pictures.split(Path(scratch), count, data_dir))
        for name, work in run.works(backbone).items():
            if name != "search":
                print(f"  {name} ...", file=sys.stderr, flush=True)
                work()
        written = run.write_vectors()
        for name in searching.FILES:
            shutil.move(written / name, directory / name)


class _Stages:
    """The stages of one split of pictures, on plain directories."""

    def __init__(self, place: Path, split: Stl10Split) -> None:
        self._place = place
        self._split = split
        self.sheet = place / "render" / ENTRY / "grid.png"

    def works(self, backbone: Backbone) -> dict[str, Callable[[], None]]:
        """The stages to run, in order. Makes the backbone, which features loads."""
        backbone.write(self._place / "models")
        return {
            "preprocess": self._preprocess,
            "features": self._features,
            "partition": self._partition,
            "index": self._index,
            "search": self._search,
        }

    def ids(self) -> list[str]:
        """The ids of the library's pictures, sorted."""
        return [id for segment in self._segments() for id in IndexTable.read(segment / TABLE).ids]

    def write_vectors(self) -> Path:
        """Writes the vectors of the library to one file and those of the queries to another; returns the directory."""
        directory = self._place / "vectors"
        directory.mkdir()
        np.save(directory / "library.npy", np.concatenate([*map(segments.vectors, self._segments())]))
        np.save(directory / "queries.npy", np.load(self._queries / "vectors.npy", mmap_mode="r"))
        return directory

    def answers(self) -> EntryAnswers:
        """The answers on the sheet, in the order of the queries' vectors."""
        return render.read(ENTRY, _K, self._queries, self._place / "search" / ENTRY)

    @property
    def _queries(self) -> Path:
        return self._place / "features" / entry_paths.directory(ENTRY)

    def _segments(self) -> list[Path]:
        return sorted((self._place / "index").iterdir())

    def _preprocess(self) -> None:
        packs = self._place / "packs"
        pictures.write_library(self._split.library, self._place, packs)
        pictures.write_queries(self._split.queries, self._place, packs)

    def _features(self) -> None:
        with Contender(features.MODULE, "ours", self._place) as ours:
            ours.seconds()

    def _partition(self) -> None:
        stage, packs = partition.start({}), self._place / "packs"
        given = {"features": self._place / "features" / "library", "thumbnails": packs / thumbnail_files.DIRECTORY}
        for inputs in _joined(given):
            pictures.process(stage, self._place / "partition", *inputs)

    def _index(self) -> None:
        stage, dealt = index.start({}), self._place / "partition"
        kinds = {"features": "library", "vectors": vector_files.DIRECTORY, "thumbnails": thumbnail_files.DIRECTORY}
        for inputs in _joined({name: dealt / kind for name, kind in kinds.items()}):
            pictures.process(stage, self._place / "index", *inputs)

    def _search(self) -> None:
        """Searches, and draws the sheet."""
        stage, out = search.start({}), self._place / "search"
        bucket = self._queries.parent
        queries = DatumInput("queries", bucket, f"queries/{bucket.name}", "")
        for segment in self._segments():
            pictures.process(stage, out, DatumInput("index", segment, segment.name, ""), queries)
        entry = DatumInput("queries", self._queries, f"queries/{bucket.name}/{ENTRY}", "")
        found = DatumInput("search", out / ENTRY, ENTRY, "")
        pictures.process(render.start({}), self._place / "render", entry, found)


def _joined(parents: Mapping[str, Path]) -> Iterator[list[DatumInput]]:
    """The inputs of each datum of partition or index: those directories that have one name in the parents, which are
    given by input."""
    for name in sorted(each.name for each in parents["features"].iterdir()):
        yield [DatumInput(given, parent / name, f"{parent.name}/{name}", "") for given, parent in parents.items()]


def _keep(answers: EntryAnswers, ids: list[str], path: Path) -> None:
    """Writes answers in the format of benchmarks.races.searchers."""
    rows = {id: row for row, id in enumerate(ids)}
    matches = [answer.matches for answer in answers.answers]
    np.savez(
        path,
        distances=np.array([[match.distance for match in row] for row in matches], np.float32),
        rows=np.array([[rows[match.id] for match in row] for row in matches], np.int64),
    )


if __name__ == "__main__":
    sys.exit(main())
