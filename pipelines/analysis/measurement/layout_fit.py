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
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.analysis import stage_runs
from pipelines.analysis.stage_runs import StageDatum, StageInput
from pipelines.client.deployment.deployment import make_repo
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.transfer import vector_export
from pipelines.transfer.vector_export import VectorExport
from stages.files import vector_files
from stages.files.layout_files import ARRAYS, FACTS, REPO

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
    library = vector_export.plan(connection)
    with tempfile.TemporaryDirectory(prefix="lookalike-map-") as scratch:
        sample, out = Path(scratch, "sample"), Path(scratch, "out")
        sample.mkdir()
        chosen = chosen_rows({name: table.ids for name, table in library.segments.items()}, most)
        ids = [library.segments[name].ids[row] for name, row in chosen]
        np.save(sample / "ids.npy", np.array(ids, "S64"))
        np.save(sample / "vectors.npy", connection.retry(lambda: _vectors(library, chosen, Path(scratch, "vectors"))))
        about = {
            "index": library.index.at,
            "library": library.facts.count,
            "metric": library.facts.metric,
            "origin": library.facts.origin.as_data(),
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


def chosen_rows(ids: Mapping[str, Sequence[str]], most: int) -> list[tuple[str, int]]:
    """The segments and rows of the sample, in the order of ids."""
    every = ((id[1:], id, name, row) for name, some in ids.items() for row, id in enumerate(some))
    return [(name, row) for _, _, name, row in sorted(heapq.nsmallest(most, every), key=lambda each: each[1])]


def _vectors(library: VectorExport, chosen: Sequence[tuple[str, int]], scratch: Path) -> Any:
    """The vectors of the sample, float32 (m, d); only the files of pieces that have some are fetched."""
    found = []
    for name, some in groupby(chosen, key=lambda each: each[0]):
        places, directory = library.segments[name].vectors.of([row for _, row in some]), scratch / name
        directory.mkdir(parents=True, exist_ok=True)
        for number in np.unique(places.numbers):
            piece = f"{places.files[number]}{vector_files.SUFFIX}"
            content = library.index.read(f"/{name}/{vector_files.DIRECTORY}/{piece}")
            (directory / piece).write_bytes(content)
        found.append(np.asarray(places.together(directory, library.facts.origin.dimension, "index")))
    return np.concatenate(found)
