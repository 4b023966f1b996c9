"""The walk from one tile of a result sheet back to the files that it came from, and that from one picture of the index.

`trace` and `picture` are the ways in, for the command and for web pages. The walk knows the names of the pipelines'
files; it reads those of this one tile or picture, never a list of all datums or pictures.
"""

import io
import json
import re
from dataclasses import replace

import numpy as np
import pyarrow.compute as pc

from pipelines.analysis.tracing.picture_lineage import LARGEST_TABLE, PictureLineage, PictureLocation, commit_start
from pipelines.analysis.tracing.sheet_tiles import SheetTile, tile
from pipelines.analysis.tracing.traces import AnswerTrace, PictureTrace, TraceStep
from pipelines.client.commit_sets import commit_at
from pipelines.client.lineage import Lineage
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.client.stored_file import StoredFile
from pipelines.errors import LookalikeError
from stages.datum.contract import StageError
from stages.files.tables.index_table import TABLE, IndexTable
from stages.files.tables.neighbour_table import NeighbourTable

_LIBRARY = ("images", "preprocess", "features", "")
"""The repo, the pipelines and the entry of a picture of the library, as `PictureLocation` has them."""


def trace(connection: Connection, entry: str, query: str = "", rank: int = 1, at: str = "") -> AnswerTrace:
    """The path of the neighbour number `rank` (from 1) of a query of an entry, now or at a commit or date.

    entry: its true name. query: a name of a picture in it, or its id or the start of one; by default the first by name.
    Links that cannot be followed are told in the result. Raises LookalikeError if there is no such tile.
    """
    lineage = Lineage(connection)
    chosen = tile(connection, entry, query, rank, commit_at(connection, at) if at else "")
    answer, near = chosen.answer, chosen.neighbour
    descent = PictureLineage(lineage, chosen.commit, answer.backbone, answer.model)
    search, segment = _search(lineage, chosen, descent)
    asked = PictureLocation(
        "queries", "preprocess-queries", "features-queries", answer.entry, answer.id, answer.sources
    )
    found = AnswerTrace(
        entry=chosen.entry,
        rank=chosen.rank,
        k=answer.k,
        metric=answer.metric,
        distance=near.distance,
        commit=chosen.commit,
        began=commit_start(lineage.commit("render", chosen.commit)),
        query=descent.pictured(asked),
        neighbour=descent.pictured(PictureLocation(*_LIBRARY, near.id, near.sources, segment)),
        index=descent.steps.of("index", f"/{segment}/index.json"),
        search=search,
        render=descent.steps.of("render", f"/{answer.entry}/neighbors.jsonl"),
        model=descent.model(),
    )
    return replace(found, checks=descent.checked(found.steps))


def picture(connection: Connection, id_: str, name: str, at: str) -> PictureTrace:
    """The way of one picture of the index, by its id and the true name of one source, at the id of a commit set.

    Raises LookalikeError if the index of then has no such picture.
    """
    lineage = Lineage(connection)
    segment, facts = _segment(lineage, id_, at)
    descent = PictureLineage(lineage, at, str(facts.get("backbone", "")), str(facts.get("model", "")))
    found = PictureTrace(
        commit=at,
        began=commit_start(lineage.commit("index", at)),
        picture=descent.pictured(PictureLocation(*_LIBRARY, id_, (name,), segment)),
        index=descent.steps.of("index", f"/{segment}/index.json"),
        model=descent.model(),
    )
    return replace(found, checks=descent.checked(found.steps))


def _segment(lineage: Lineage, id_: str, at: str) -> tuple[str, dict[str, object]]:
    """The segment of the index that an id belongs to, and its facts."""
    for file in lineage.files("index", "/*/index.json", at):
        segment = file.path.split("/")[1]
        if id_.startswith(segment):
            try:
                return segment, dict(json.loads(lineage.read(file)))
            except ValueError as error:
                raise LookalikeError(f"{file.path} was not written by lookalike's index: {error}") from error
    raise LookalikeError(f"the index of commit {at[:12]} has no segment with the picture {id_[:12]}")


def _search(lineage: Lineage, chosen: SheetTile, descent: PictureLineage) -> tuple[TraceStep, str]:
    """The step that found the neighbour, and the segment of the index in which it did."""
    answer, neighbour = chosen.answer, chosen.neighbour
    for table in lineage.files("search", f"/{answer.entry}/*.parquet", chosen.commit):
        segment = table.path.rpartition("/")[2].removesuffix(".parquet")
        if neighbour.id.startswith(segment):
            found = _neighbours(lineage, table, answer.id)
            if found is not None:
                near = {each.id: each.distance for each in found}
                same = neighbour.id in near and np.float32(near[neighbour.id]) == np.float32(neighbour.distance)
                descent.check("search found this neighbour at this distance", same)
                descent.check("search compared vectors of the answer's model", found.origin.model == answer.model)
            return descent.steps.at(table), segment
    gone = f"it has no table of the neighbour's segment for {chosen.entry}"
    return TraceStep("search", f"/{answer.entry}/", note=gone), neighbour.id[:1]


def _neighbours(lineage: Lineage, table: StoredFile, asked: str) -> NeighbourTable | None:
    if table.size > LARGEST_TABLE:
        return None
    try:
        content = io.BytesIO(lineage.read(table))
        return NeighbourTable.read(content, lambda table: pc.equal(table["query"], asked).to_numpy())
    except StageError:  # another version's
        return None


_ID = re.compile("[0-9a-f]{6,64}")


def find(connection: Connection, word: str, at: str = "") -> tuple[str, str, str]:
    """The id, the true name of a source, and the commit of the index, now or at a commit set. word: that name, or the
    id or its start. Raises LookalikeError if there is no such picture, or more than one."""
    index = Repository(connection, "index", at).good()
    if index is None:
        raise LookalikeError("there is no index yet: `lookalike status` gives the reason")
    name = word.removeprefix("./")
    found: dict[str, str] = {}
    for path, content in index.read_all(f"/*/{TABLE}"):
        segment = path.split("/")[1]
        by_id = _ID.fullmatch(word) is not None and (word.startswith(segment) or segment.startswith(word))
        for id_, names in _pictures(content, path):
            if name in names:
                return id_, name, index.at
            if by_id and id_.startswith(word):
                found[id_] = names[0]
    if len(found) > 1:
        raise LookalikeError(f"{len(found)} pictures have ids that begin with {word}: give more of it")
    for id_, first in found.items():
        return id_, first, index.at
    raise LookalikeError(
        f"the library{f' of commit {at[:12]}' if at else ''} has no picture {word}: give its name as result sheets "
        "show it, or its id"
    )


def _pictures(content: bytes, path: str) -> list[tuple[str, tuple[str, ...]]]:
    try:
        table = IndexTable.read(io.BytesIO(content))
    except StageError as error:
        raise LookalikeError(f"{path} of index cannot be read: {error}") from error
    return [(id_, tuple(each.path for each in some)) for id_, some in zip(table.ids, table.sources, strict=True)]
