"""The duplicates stage: groups of exact copies, the list of those to remove, groups of near ones, and pages of both.

Input `pairs`: the directory /pairs of neighbours. For runs on plain directories there are the input `pictures`, tables
of the index, `references`, the names of pictures that stay at their URLs (stages.record.name_lists), and the parameter
ACROSS, two folders as a JSON array. Owns the paths; other modules own the content.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.duplicates"))

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stages.datum.contract import Datum, StageError
from stages.datum.text_format import counted
from stages.files.tables.image_table import read_sources
from stages.files.tables.pair_table import PairTable
from stages.quality import copy_groups
from stages.quality.copy_groups import CopyCandidates, FolderPair
from stages.record import name_lists
from stages.record.sources import Source
from stages.report.copy_pages import EXACT, LIST, MOST_GROUPS, NEAR, CopyFacts, draw_pages, pages

VERSION = 4
"""Version of the stage's output, equal to LOOKALIKE_STAGE in its specifications. See CONTRIBUTING.md."""


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Reads ACROSS (default: the whole library). Returns the function that processes a datum.

    It writes groups.jsonl, remove.txt and index.html, page-2.html … of exact copies, and near.jsonl and near.html,
    near-2.html … of near ones.
    """
    across = _across(environment.get("ACROSS", ""))

    def process(datum: Datum) -> None:
        datum.require("duplicates needs the directory /pairs of neighbours", "pairs")
        tables = sorted(datum.inputs["pairs"].path.rglob("*.parquet"))
        if across and "pictures" in datum.inputs:
            _check_folders(across, datum.inputs["pictures"].path)
        found, facts = _read(tables, across)
        exact, near = copy_groups.exact_groups(found, across), copy_groups.near_groups(found, across)
        if "references" in datum.inputs:
            names = name_lists.parse(datum.inputs["references"].path.read_text(encoding="utf-8"))
            exact = copy_groups.without_last_stored(exact, set(names))
        thumbnails = _thumbnails(tables, draw_pages(exact) | draw_pages(near))
        datum.out.mkdir(parents=True, exist_ok=True)
        for kind, groups in ((EXACT, exact), (NEAR, near)):
            _write(datum.out / kind.lines, copy_groups.json_lines(groups, facts.stated))
            for name, page in pages(kind, groups, facts, thumbnails):
                (datum.out / name).write_text(page, encoding="utf-8", newline="\n")
            if len(groups) > MOST_GROUPS:
                print(f"duplicates: the pages show {MOST_GROUPS} of {counted(len(groups), *kind.unit)}")
        _write(datum.out / LIST, name_lists.lines(copy_groups.removable(exact)))
        print(f"duplicates: {counted(len(exact), *EXACT.unit)}, {counted(len(near), *NEAR.unit)}")

    return process


def _across(text: str) -> FolderPair:
    if not text:
        return None
    try:
        one, other = json.loads(text)
    except (ValueError, TypeError) as error:
        raise StageError(f'ACROSS={text!r}: must be two folders, such as ["train","test"]') from error
    return str(one), str(other)


def _check_folders(across: tuple[str, str], pictures: Path) -> None:
    """Raises StageError unless the library, in tables of the index, has pictures in both folders."""
    missing = list(across)
    for table in pictures.rglob("*.parquet"):
        held = read_sources(table).paths
        missing = [folder for folder in missing if not any(copy_groups.is_in(path, folder) for path in held)]
    if missing:
        raise StageError(f"the library has no pictures in {' and '.join(missing)}")


def _read(tables: Iterable[Path], across: FolderPair) -> tuple[CopyCandidates, CopyFacts]:
    """The pairs of all tables. One table's thumbnails are in memory at a time, and 15 bytes for each pair."""
    sources: dict[str, Sequence[Source]] = {}
    met: dict[str, int] = {}  # pictures by id, numbered as they come
    kinds = (np.int32, np.int32, np.float32, np.uint8, np.uint8, np.bool_)
    columns: list[list[Any]] = [[np.empty(0, kind)] for kind in kinds]
    facts: CopyFacts | None = None
    for table in tables:
        pairs = PairTable.read(table)
        facts, pictures = _facts(facts, pairs, across, table), pairs.pictures
        sources |= zip(pictures.ids, pictures.sources, strict=True)
        numbers = np.array([met.setdefault(id, len(met)) for id in pictures.ids], np.int32)
        first, second = numbers[pictures.first], numbers[pictures.second]
        read = first, second, pairs.distances, pairs.bits, pairs.turns, pairs.near
        for column, values in zip(columns, read, strict=True):
            column.append(values)
    ids = sorted(met)
    rows = np.empty(len(ids), np.int32)
    rows[[met[id] for id in ids]] = np.arange(len(ids))
    first, second, *others = map(np.concatenate, columns)
    return CopyCandidates(ids, [sources[id] for id in ids], rows[first], rows[second], *others), facts or CopyFacts(
        across=across
    )


def _facts(before: CopyFacts | None, pairs: PairTable, across: FolderPair, table: Path) -> CopyFacts:
    """Those of a table, which must be those of the tables before it."""
    facts = CopyFacts(pairs.threshold, pairs.metric, pairs.origin, across, pairs.hash_bits)
    if before not in (None, facts):
        raise StageError(
            f"{table.parent.name}/{table.name} has pairs of another model, metric, THRESHOLD or HASH_BITS than the "
            "tables before it: wait until neighbours has recomputed everything, or run: "
            "lookalike deploy --reprocess neighbours"
        )
    return facts


def _thumbnails(tables: Iterable[Path], wanted: Collection[str]) -> dict[str, bytes]:
    """The thumbnails of these pictures, JPEG by id."""
    found: dict[str, bytes] = {}
    for table in tables:
        if len(found) == len(wanted):
            break
        pictures = PairTable.read(table).pictures
        found |= {id: jpeg for id, jpeg in zip(pictures.ids, pictures.thumbnails, strict=True) if id in wanted}
    return found


def _write(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
