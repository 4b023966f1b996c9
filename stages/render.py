"""The render stage: one entry's answers as files for people and programs: neighbors.jsonl, grid.png, index.html and
further pages.

Input `queries`: a directory /queries/<bucket>/<entry> of features-queries (images.parquet, images.thumbnails,
rejected.jsonl, scale.json, texts.jsonl); input `search`: a directory /<entry> of search with one table for each
segment. The join is an outer one, so either may be missing.
Parameter: K, the neighbours of each query. Owns the paths; other modules own the content of the files.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.render"))

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from stages.backbone.backbone_spec import SCALE_FILE
from stages.datum.contract import Datum, DatumInput, StageError, load
from stages.datum.stage_parameters import integer
from stages.files import query_texts, thumbnail_files
from stages.files.packs import Rejection, read_rejections
from stages.files.tables.image_table import ImageTable
from stages.files.tables.neighbour_table import NeighbourTable
from stages.quality.entry_answers import EntryAnswers, json_lines, merge
from stages.record.pfs_names import QUESTION_FILE, escape_component, escape_path, unescape
from stages.report.query_sample import sheet_queries
from stages.report.result_grid import grid
from stages.report.result_pages import pages

STAGE = "render"
VERSION = 11
"""Version of the stage's output, equal to LOOKALIKE_STAGE in its specifications. See CONTRIBUTING.md."""

INPUTS = ("queries", "search")
_TABLE = "images.parquet"
MOST_NEIGHBOURS = 1000


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Reads K (default 3). Raises StageError if it is not a whole number from 1 to `MOST_NEIGHBOURS`."""
    k = integer(environment, "K", 3, 1, MOST_NEIGHBOURS)

    def process(datum: Datum) -> None:
        entry, queries, search = _sides(datum)
        write(entry, read(entry, k, queries, search), datum.out / entry)

    return process


def read(entry: str, k: int, queries: Path | None, search: Path | None) -> EntryAnswers:
    """The answers to the queries of `entry` (its PFS name), from the directories of both sides; None for a missing one.

    Raises StageError if a table is invalid or the tables do not fit together.
    """
    table, refused, asked, scale = (
        _file(queries, name) for name in (_TABLE, "rejected.jsonl", QUESTION_FILE, SCALE_FILE)
    )
    images = ImageTable.read(table) if table is not None else None
    rejected = read_rejections(refused) if refused is not None else []
    question: Mapping[str, Any] = (
        load("stages.files.question").from_json(asked.read_bytes()).given if asked is not None else {}
    )
    if "k" in question and question["k"] > k:
        reason = f"k is {question['k']}, but the pipelines keep {k} neighbours, K: the nearest {k} are listed"
        rejected.append(Rejection(f"{unescape(entry)}/{QUESTION_FILE}", STAGE, reason))
    limits = {name: value for name, value in question.items() if name != "k"}
    tables = sorted(search.glob("*.parquet")) if search is not None else []
    name = true_name(entry, images, rejected)
    thumbnails = None if queries is None or images is None else _thumbnails(queries, images)
    readers = [partial(NeighbourTable.read, each) for each in tables]
    texts = query_texts.read(queries) if queries is not None else []
    kept = min(k, question.get("k", k))
    scales = scale.read_bytes() if scale is not None else b""
    return merge(name, kept, images, readers, rejected, thumbnails, limits, scales, texts)


def write(entry: str, answers: EntryAnswers, directory: Path) -> None:
    """Writes the files into `directory`. `entry` is the PFS name, which determines the queries on the grid."""
    chosen = sheet_queries(entry, (answer.query for answer in answers.answers))
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "neighbors.jsonl").open("w", encoding="ascii", newline="\n") as file:
        file.writelines(f"{line}\n" for line in json_lines(answers))
    (directory / "grid.png").write_bytes(grid(answers, chosen))
    for name, text in pages(answers):
        (directory / name).write_text(text, encoding="utf-8", newline="\n")


def true_name(entry: str, images: ImageTable | None, rejected: Iterable[Rejection]) -> str:
    """The entry's true name.

    Escaping cuts a name that is too long for one component; then only the sources in the entry have all of it.
    """
    if not entry.endswith("%"):
        return unescape(entry)
    sources = [source.path for row in images.sources for source in row] if images is not None else []
    for path in (*sources, *(each.source for each in rejected)):
        if _top(escape_path(path)) == entry:
            return _top(path)
        if _top(escape_component(path)) == entry:
            return path
    return f"{unescape(entry[:-1])}…"


def _sides(datum: Datum) -> tuple[str, Path | None, Path | None]:
    """The entry's PFS name and the directories of both sides of the join."""
    sides = [datum.inputs[name] for name in INPUTS if name in datum.inputs]
    entries = {_entry(side) for side in sides}
    if len(entries) != 1:
        raise StageError(
            f"render needs one entry on its inputs {' and '.join(INPUTS)}, not {sorted(entries) or 'none'}: join both "
            "on the entry, as specs/render.json does"
        )
    queries, search = (datum.inputs[name].path if name in datum.inputs else None for name in INPUTS)
    return entries.pop(), queries, search


def _entry(side: DatumInput) -> str:
    name = side.repo_path.rpartition("/")[2]
    if not name:
        raise StageError(f"input {side.name} must be one entry, not the whole repo: see the globs in specs/render.json")
    return name


def _top(path: str) -> str:
    return path.partition("/")[0]


def _thumbnails(queries: Path, images: ImageTable) -> list[bytes]:
    """Those of all queries, which the pages show."""
    read = thumbnail_files.ThumbnailFiles(queries, "features-queries").read
    return [read(place) for place in thumbnail_files.places(Path(_TABLE).stem, images.thumbnail_sizes)]


def _file(queries: Path | None, name: str) -> Path | None:
    """The file of the entry with that name, if there is one."""
    file = queries / name if queries is not None else None
    return file if file is not None and file.exists() else None
