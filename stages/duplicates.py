"""The duplicates stage: groups of equal and near pictures, the list of those to remove, and pages that show them.

Input `pairs`: the directory /pairs of neighbours. For runs on plain directories there are the input `pictures`, its
directory /pictures, and two parameters: DISTANCE, at most the limit of the tables, and ACROSS, two folders as a JSON
array. Owns the paths; other modules own the content.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.contract
    from stages import contract

    raise SystemExit(contract.run("stages.duplicates"))

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stages import copies, namelists
from stages.contract import Datum, StageError
from stages.copies import Group, Near
from stages.copypages import MOST_GROUPS, Facts, drawn, pages
from stages.parameters import number
from stages.sources import Source
from stages.tables.nearest import read_pictures
from stages.tables.pairs import Pairs, read_pairs

VERSION = 1
"""Of the stage's output, as LOOKALIKE_STAGE in its specifications states it; see CONTRIBUTING.md."""

_NO_LIMIT = float("inf")


@dataclass(frozen=True)
class _Chosen:
    """distance: the largest that counts, _NO_LIMIT for that of the tables. across: two folders."""

    distance: float
    across: tuple[str, str] | None


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Reads DISTANCE (default: the tables' limit) and ACROSS (default: the whole library)."""
    chosen = _Chosen(number(environment, "DISTANCE", _NO_LIMIT), _across(environment.get("ACROSS", "")))

    def process(datum: Datum) -> None:
        if "pairs" not in datum.inputs:
            raise StageError("the input pairs is missing: duplicates needs the directory /pairs of neighbours")
        tables = sorted(datum.inputs["pairs"].path.rglob("*.parquet"))
        if chosen.across and "pictures" in datum.inputs:
            _check_folders(chosen.across, datum.inputs["pictures"].path)
        near, facts = _read(tables, chosen)
        found = copies.groups(near, chosen.across)
        _write(found, facts, _thumbnails(tables, drawn(found)), datum.out)
        print(f"duplicates: {len(near.first)} pairs, {len(found)} groups")

    return process


def _across(text: str) -> tuple[str, str] | None:
    if not text:
        return None
    try:
        one, other = json.loads(text)
    except (ValueError, TypeError) as error:
        raise StageError(f'ACROSS={text!r}: must be two folders, such as ["train","test"]') from error
    return str(one), str(other)


def _check_folders(across: tuple[str, str], pictures: Path) -> None:
    """Raises StageError unless the library, in tables as neighbours writes them, has pictures in both folders."""
    missing = list(across)
    for table in pictures.glob("*.parquet"):
        held = [source.path for sources in read_pictures(table).sources for source in sources]
        missing = [folder for folder in missing if not any(copies.is_in(path, folder) for path in held)]
    if missing:
        raise StageError(f"the library has no pictures in {' and '.join(missing)}")


def _read(tables: Iterable[Path], chosen: _Chosen) -> tuple[Near, Facts]:
    """The pairs of all tables, as far as they count. One table's thumbnails are in memory at a time, and 13 bytes for
    each pair."""
    sources: dict[str, Sequence[Source]] = {}
    met: dict[str, int] = {}  # pictures by id, numbered as they come
    first, second, distances, bits = ([np.empty(0, kind)] for kind in (np.int32, np.int32, np.float32, np.uint8))
    facts: Facts | None = None
    for table in tables:
        pairs = read_pairs(table)
        facts = _common(facts, _facts(pairs, chosen), table)
        sources |= zip(pairs.ids, pairs.sources, strict=True)
        counted = pairs.distances.astype(np.float64) <= facts.distance
        numbers = np.array([met.setdefault(id, len(met)) for id in pairs.ids], np.int32)
        first.append(numbers[pairs.first[counted]])
        second.append(numbers[pairs.second[counted]])
        distances.append(pairs.distances[counted])
        bits.append(pairs.bits[counted])
    ids = sorted(met)
    rows = np.empty(len(ids), np.int32)
    rows[[met[id] for id in ids]] = np.arange(len(ids))
    near = Near(
        ids=ids,
        sources=[sources[id] for id in ids],
        first=rows[np.concatenate(first)],
        second=rows[np.concatenate(second)],
        distances=np.concatenate(distances),
        bits=np.concatenate(bits),
    )
    return near, facts or Facts(across=chosen.across)


def _facts(pairs: Pairs, chosen: _Chosen) -> Facts:
    if _NO_LIMIT > chosen.distance > pairs.threshold:
        raise StageError(
            f"DISTANCE={chosen.distance:g} is above THRESHOLD={pairs.threshold:g}: farther pairs are not kept"
        )
    limit = min(chosen.distance, pairs.threshold)
    return Facts(limit, pairs.metric, pairs.backbone, pairs.model, chosen.across, pairs.hash_bits)


def _common(before: Facts | None, facts: Facts, table: Path) -> Facts:
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
        pairs = read_pairs(table)
        found |= {id: jpeg for id, jpeg in zip(pairs.ids, pairs.thumbnails, strict=True) if id in wanted}
    return found


def _write(found: Sequence[Group], facts: Facts, thumbnails: Mapping[str, bytes], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with (out / "groups.jsonl").open("w", encoding="ascii", newline="\n") as file:
        file.writelines(f"{line}\n" for line in copies.json_lines(found, facts.stated))
    with (out / "remove.txt").open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in namelists.lines(copies.removable(found)))
    for name, page in pages(found, facts, thumbnails):
        (out / name).write_text(page, encoding="utf-8", newline="\n")
    if len(found) > MOST_GROUPS:
        print(f"duplicates: the pages show {MOST_GROUPS} of {len(found)} groups")
