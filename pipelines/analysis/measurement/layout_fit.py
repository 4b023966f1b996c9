"""`lookalike map fit`: a layout of the map fitted to a sample of the library's vectors, for the repo `layouts`.

The sample is the pictures whose ids come first after the digit of their segment: ids are hashes, so that is a fair
sample, the same for the same library, and it lies in few files. Knows no terminal.
"""

import hashlib
import heapq
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.analysis import stage_runs
from pipelines.analysis.stage_runs import StageDatum, StageInput
from pipelines.client.deployment.deployment import make_repo
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from stages.files import segment_files, vector_files
from stages.files.layout_files import ARRAYS, FACTS, REPO
from stages.files.segment_files import SegmentFacts, parse_facts
from stages.files.tables.index_table import TABLE, IndexTable

SAMPLE, MOST_SAMPLE = 10_000, 100_000
"""Pictures that are laid out, by default and at most; all others are placed among them."""


@dataclass(frozen=True, slots=True)
class FittedLayout:
    """A layout: its files by name, and the facts in its layout.json."""

    files: Mapping[str, bytes]
    facts: Mapping[str, Any]


def fit(connection: Connection, most: int = SAMPLE, seed: int = 0) -> FittedLayout:
    """Fits a layout to the newest good commit of the index, with at most so many pictures. Raises LookalikeError if the
    library has too few, or vectors of several models."""
    index = connection.retry(Repository(connection, "index").good)
    read = {} if index is None else read_segments(connection, index)
    if index is None or not read:
        raise LookalikeError("the library has no pictures that a map could show: add some with `lookalike add`")
    first = next(iter(read.values()))[0]
    for name, (facts, _) in read.items():
        if mismatch := first.origin.mismatch(facts.origin, "a segment", f"segment {name}"):
            raise LookalikeError(f"{mismatch} {segment_files.WAIT}")
    with tempfile.TemporaryDirectory(prefix="lookalike-map-") as scratch:
        sample, out = Path(scratch, "sample"), Path(scratch, "out")
        sample.mkdir()
        out.mkdir()
        chosen = chosen_rows({name: table.ids for name, (_, table) in read.items()}, most)
        ids = [read[name][1].ids[row] for name, row in chosen]
        np.save(sample / "ids.npy", np.array(ids, "S64"))
        np.save(sample / "vectors.npy", _vectors(connection, index, read, chosen, Path(scratch)))
        about = {
            "index": index.at,
            "library": sum(len(table) for _, table in read.values()),
            "metric": first.metric,
            "origin": first.origin.as_data(),
            "sample_sha256": hashlib.sha256("\n".join(ids).encode()).hexdigest(),
        }
        (sample / "about.json").write_text(json.dumps(about))
        stage_runs.run("layout", [StageDatum({"sample": StageInput(sample, "")}, out)], {"SEED": str(seed)})
        files = {name: (out / name).read_bytes() for name in (FACTS, ARRAYS)}
    return FittedLayout(files, json.loads(files[FACTS]))


def put(connection: Connection, layout: FittedLayout) -> str:
    """Commits a layout, in place of the one before; returns the commit, "" if the same one is there."""
    make_repo(connection, REPO)
    repository = Repository(connection, REPO)
    if connection.retry(repository.contents) == layout.files:
        return ""
    edits = [PutFile(f"/{name}", content) for name, content in layout.files.items()]
    return repository.write(edits, description=f"Lay out the map by {layout.facts['sample']:,} pictures")


def read_segments(connection: Connection, index: Repository) -> dict[str, tuple[SegmentFacts, IndexTable]]:
    """The facts and the table of each segment, by name."""
    facts = dict(connection.retry(lambda: list(index.read_all(f"/*/{segment_files.FACTS}"))))
    tables = dict(connection.retry(lambda: list(index.read_all(f"/*/{TABLE}"))))
    found = {}
    for path, content in sorted(facts.items()):
        name = path.split("/")[1]
        table = IndexTable.read(pa.BufferReader(tables[f"/{name}/{TABLE}"]))
        found[name] = parse_facts(partial(bytes, content), name), table
    return found


def chosen_rows(ids: Mapping[str, Sequence[str]], most: int) -> list[tuple[str, int]]:
    """The segments and rows of the sample, in the order of ids."""
    every = ((id[1:], id, name, row) for name, some in ids.items() for row, id in enumerate(some))
    return [(name, row) for _, _, name, row in sorted(heapq.nsmallest(most, every), key=lambda each: each[1])]


def _vectors(
    connection: Connection,
    index: Repository,
    read: Mapping[str, tuple[SegmentFacts, IndexTable]],
    chosen: Sequence[tuple[str, int]],
    scratch: Path,
) -> Any:
    """The vectors of the sample, float32 (m, d); only the files of pieces that have some are fetched."""
    rows: dict[str, list[int]] = {}
    for name, row in chosen:
        rows.setdefault(name, []).append(row)
    found = []
    for name, some in rows.items():
        facts, table = read[name]
        places, directory = table.vectors.of(some), scratch / name
        directory.mkdir()
        for number in sorted({*places.numbers.tolist()}):
            piece = f"{places.files[number]}{vector_files.SUFFIX}"
            path = f"/{name}/{vector_files.DIRECTORY}/{piece}"
            (directory / piece).write_bytes(connection.retry(index.read, path))
        found.append(np.asarray(places.together(directory, facts.origin.dimension, "index")))
    return np.concatenate(found)
