"""Vectors of a file made ready to be put: each row by the picture that it names, checked, and every reason for which it
cannot be put, with the row.

Vectors lie in files on the disk, one for each sixteenth of the library; ids are in memory.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from pipelines.errors import LookalikeError
from pipelines.library.attributes.picture_keys import AmbiguousKeyError, PictureKeys
from pipelines.library.vectors.vector_repo import VectorBatch, VectorRepo
from pipelines.library.vectors.vector_source import VectorRow
from stages.files.tables.vector_table import VectorTable
from stages.knn.backend import Vectors

_LOOKED_AT = 1000
"""Rows that say of which dimension the vectors are, in a library that has none yet."""

_NUMBER = 4
"""Bytes of a number."""


class VectorProblem(NamedTuple):
    """A row that cannot be put. kind: of the reason, in a few words."""

    line: int
    kind: str
    reason: str


class KnownPictures:
    """The pictures of the library by their ids and the true paths of their files."""

    def __init__(self, ids: Mapping[str, str]) -> None:
        """ids: by path."""
        self._by_path = ids
        self._keys = PictureKeys(ids)
        self.ids = frozenset(ids.values())

    def find(self, row: VectorRow) -> tuple[str, str]:
        """The id that a row names, or "" and the reason."""
        if row.id:
            return (row.id, "") if row.id in self.ids else ("", f"no picture of the library has the id {row.id[:80]}")
        if not (name := row.path):
            return "", "it names no picture"
        if name in self.ids:
            return name, ""
        try:
            path = self._keys.find(name)
        except AmbiguousKeyError as error:
            return "", f"{len(error.paths):,} pictures are called {name}: name the folder, too"
        return (self._by_path[path], "") if path else ("", f"no picture of the library is called {name}")


@dataclass
class _Spool:
    """Vectors of a sixteenth on the disk, and the rows of their pictures there. lines: those of the file."""

    file: BinaryIO
    rows: dict[str, int] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)


@dataclass
class PlannedVectors:
    """table: the model, without pictures. problems: the numbers of rows by the kind of their reason. same: rows that
    say again what another one said. there: pictures whose vectors are there already. replaced: ids by the batch."""

    table: VectorTable
    problems: Counter[str] = field(default_factory=Counter)
    same: int = 0
    there: int = 0
    replaced: dict[str, list[str]] = field(default_factory=dict)
    batches: list[VectorBatch] = field(default_factory=list)

    @property
    def pictures(self) -> int:
        """The number of pictures that get a vector."""
        return sum(len(each.table) for each in self.batches)


def dimension_of(rows: Iterator[VectorRow], repo: VectorRepo) -> tuple[int, Iterator[VectorRow]]:
    """The dimension that most of the first rows have, or that of the vectors that are there; and all rows. Raises
    LookalikeError where no row has a vector."""
    first = [*islice(rows, _LOOKED_AT)]
    lengths = Counter(len(each.vector) for each in first if each.vector is not None and len(each.vector))
    if not lengths:
        raise LookalikeError("none of the first rows has a vector: nothing was put")
    return repo.model.dimension if repo.model else lengths.most_common(1)[0][0], chain(first, rows)


def plan(
    rows: Iterable[VectorRow],
    pictures: KnownPictures,
    repo: VectorRepo,
    table: VectorTable,
    fetch: Callable[[str], Vectors],
    replaces: bool,
    scratch: Path,
    note: Callable[[VectorProblem], None],
) -> PlannedVectors:
    """table: the model of all. fetch: gives the vectors of a batch that is there. replaces: whether another vector than
    the one there is put in its place. scratch: a directory for files, which the batches need until they are written.
    note: hears of each row that cannot be put, in order."""
    made = PlannedVectors(table)
    there = {id: (batch, row) for batch, each in repo.tables.items() for row, id in enumerate(each.ids)}
    planning = _Planning(made, there, fetch, replaces)
    spools: dict[str, _Spool] = {}
    with ExitStack() as opened:
        for row in rows:
            id, vector, problem = _checked(row, pictures, table.dimension)
            if problem is None and id[0] not in spools:
                spools[id[0]] = _Spool(opened.enter_context((scratch / f"{id[0]}.vectors").open("w+b")))
            if problem is None:
                problem = planning.put(spools[id[0]], row.line, id, vector)
            if problem is not None:
                made.problems[problem.kind] += 1
                note(problem)
    for digit, spool in sorted(spools.items()):
        if spool.rows:
            shape = (len(spool.rows), table.dimension)
            vectors: Vectors = np.memmap(scratch / f"{digit}.vectors", np.dtype("<f4"), "r", shape=shape)
            ids = sorted(spool.rows)
            made.batches.append(VectorBatch(replace(table, ids=ids), vectors, [spool.rows[id] for id in ids]))
    return made


def _checked(row: VectorRow, pictures: KnownPictures, dimension: int) -> tuple[str, Vectors, VectorProblem | None]:
    """The picture and the vector of a row, float32 (d,); or why it cannot be put."""
    nothing = np.empty(0, np.float32)
    if row.vector is None:
        return "", nothing, VectorProblem(row.line, "no vector", row.reason)
    if len(row.vector) != dimension:
        reason = f"it has {len(row.vector):,} numbers, and the others have {dimension:,}"
        return "", nothing, VectorProblem(row.line, "another dimension", reason)
    with np.errstate(over="ignore"):
        vector: Vectors = row.vector.astype(np.float32)
    if not np.isfinite(vector).all():
        at = int(np.flatnonzero(~np.isfinite(vector))[0])
        reason = f"its number {at + 1} is {row.vector[at]}, which is not a finite float32"
        return "", nothing, VectorProblem(row.line, "NaN or infinite", reason)
    if not vector.any():
        return "", nothing, VectorProblem(row.line, "zero", "all its numbers are 0, which is alike to nothing")
    id, reason = pictures.find(row)
    return id, vector, VectorProblem(row.line, "unknown picture", reason) if reason else None


@dataclass
class _Planning:
    """Rows that go into spools one after the other. there: the batch and the row of each vector that is there."""

    made: PlannedVectors
    there: Mapping[str, tuple[str, int]]
    fetch: Callable[[str], Vectors]
    replaces: bool

    def put(self, spool: _Spool, line: int, id: str, vector: Vectors) -> VectorProblem | None:
        """Takes a row, unless it says nothing new; returns why it cannot be put."""
        if id in spool.lines:
            if np.array_equal(self._earlier(spool, id), vector):
                self.made.same += 1
                return None
            reason = f"it has another vector than row {spool.lines[id]} for the picture {id}"
            return VectorProblem(line, "two vectors", reason)
        if id in self.there:
            if np.array_equal(self._held(id), vector):
                spool.lines[id] = line
                self.made.there += 1
                return None
            if not self.replaces:
                reason = f"the picture {id} has another vector already: --replace puts this one in its place"
                return VectorProblem(line, "another vector there", reason)
            self.made.replaced.setdefault(self.there[id][0], []).append(id)
        spool.lines[id], spool.rows[id] = line, len(spool.rows)
        spool.file.write(vector.astype("<f4").tobytes())
        return None

    def _earlier(self, spool: _Spool, id: str) -> Vectors:
        """The vector that an earlier row of the file has for a picture."""
        if id not in spool.rows:
            return self._held(id)
        spool.file.flush()
        size = self.made.table.dimension * _NUMBER
        found: Vectors = np.frombuffer(os.pread(spool.file.fileno(), size, size * spool.rows[id]), np.dtype("<f4"))
        return found

    def _held(self, id: str) -> Vectors:
        batch, row = self.there[id]
        found: Vectors = self.fetch(batch)[row]
        return found
