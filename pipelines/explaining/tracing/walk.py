"""The walk from one tile of a result sheet back to the files that it came from.

`trace` is the one way in, for the command and for a web page. The walk knows the names of the pipelines' files; it
reads those of this one tile, never a list of all datums or pictures.
"""

import io
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from pipelines.client.connection import Connection
from pipelines.client.lineage import Found, Lineage, Made
from pipelines.client.moments import commit_at
from pipelines.explaining.tracing.places import Packed, Place, Places
from pipelines.explaining.tracing.stepping import Steps
from pipelines.explaining.tracing.tiles import Tile, tile
from pipelines.explaining.tracing.traces import Check, File, Model, Origin, Pictured, Step, Trace
from stages import parts
from stages.backbonespec import MODEL_FILE, SPEC_FILE, parse_spec
from stages.contract import StageError
from stages.tables.images import Images, read_images
from stages.tables.neighbours import Neighbours, read_neighbours

MOST_SOURCES = 20
"""Most sources of one picture that are followed."""

_LARGEST_TABLE = 16 << 20
"""Bytes of the largest table that is read to check a step."""


def trace(connection: Connection, entry: str, query: str = "", rank: int = 1, at: str = "") -> Trace:
    """The path of the neighbour number `rank` (from 1) of a query of an entry, now or at a commit or date.

    entry: its true name. query: a name of a picture in it, or its id or the start of one; by default the first by name.
    Links that cannot be followed are told in the result. Raises LookalikeError if there is no such tile.
    """
    return _Walk(
        Lineage(connection), tile(connection, entry, query, rank, commit_at(connection, at) if at else "")
    ).go()


@dataclass(frozen=True, slots=True)
class _Side:
    """The library or an entry of the queries: its repo and pipelines, the entry's name in PFS, and one picture."""

    repo: str
    preprocess: str
    features: str
    above: str
    id: str
    names: tuple[str, ...]


class _Walk:
    """One walk, which collects what it compares on its way."""

    def __init__(self, lineage: Lineage, chosen: Tile) -> None:
        self._lineage = lineage
        self._steps = Steps(lineage, chosen.commit)
        self._tile = chosen
        self._checks: dict[str, bool] = {}

    def go(self) -> Trace:
        """Follows every link."""
        tile = self._tile
        entry = tile.entry_path
        asked = _Side("queries", "preprocess-queries", "features-queries", entry, tile.query, tile.query_names)
        library = _Side("images", "preprocess", "features", "", tile.neighbour, tile.neighbour_names)
        search, segment = self._search()
        trace = Trace(
            entry=tile.entry,
            rank=tile.rank,
            k=tile.k,
            metric=tile.metric,
            distance=tile.distance,
            commit=tile.commit,
            began=_began(self._lineage.commit("render", tile.commit)),
            query=self._pictured(asked, f"/queries/{entry}/images.parquet"),
            neighbour=self._pictured(library, f"/library/{segment}/{{}}.parquet"),
            index=self._steps.of("index", f"/{segment}/index.json"),
            search=search,
            render=self._steps.of("render", f"/{entry}/neighbors.jsonl"),
            model=self._model(),
        )
        known = [step.unchanged for step in trace.steps if step.unchanged is not None]
        if known:
            self._check("each datum was computed from the inputs of this commit, by their hashes", all(known))
        checks = tuple(Check(*each) for each in self._checks.items())
        return replace(trace, checks=checks)

    def _search(self) -> tuple[Step, str]:
        """The step that found the neighbour, and the segment of the index in which it did."""
        entry, id_ = self._tile.entry_path, self._tile.neighbour
        for table in self._lineage.files("search", f"/{entry}/*.parquet", self._tile.commit):
            segment = table.path.rpartition("/")[2].removesuffix(".parquet")
            if id_.startswith(segment):
                found = self._neighbours(table)
                if found is not None:
                    near = {each.id: each.distance for each in found}
                    same = id_ in near and np.float32(near[id_]) == np.float32(self._tile.distance)
                    self._check("search found this neighbour at this distance", same)
                    self._check("search compared vectors of the answer's model", found.model == self._tile.model)
                return self._steps.at(table), segment
        gone = f"it has no table of the neighbour's segment for {self._tile.entry}"
        return Step("search", f"/{entry}/", note=gone), id_[:1]

    def _neighbours(self, table: Found) -> Neighbours | None:
        if table.bytes > _LARGEST_TABLE:
            return None
        asked = self._tile.query
        try:
            content = io.BytesIO(self._lineage.read(table))
            return read_neighbours(content, lambda queries, _: np.array([each == asked for each in queries], np.bool_))
        except StageError:  # another version's
            return None

    def _pictured(self, side: _Side, table: str) -> Pictured:
        """A picture with the origins of its sources. table: the path of its table of features, with {} for the part."""
        places = Places(self._lineage, side.repo, side.preprocess, self._tile.commit, side.above)
        origins, thumbnail = [], b""
        for name in side.names[:MOST_SOURCES]:
            found = places.find(name, side.id, self._buckets(side.preprocess))
            if found is None:
                origins.append(self._lost(side, name, table))
                continue
            place, packed = found
            features = self._steps.of(side.features, table.format(packed.part))
            origins.append(self._origin(places, place, packed, name, features))
            self._check_table(side, features)
            thumbnail = thumbnail or packed.pack.thumbnail(packed.row)
        return Pictured(side.id, side.names, tuple(origins), thumbnail)

    def _buckets(self, pipeline: str) -> int:
        """The number of parts of lone pictures, as preprocess had it."""
        text = self._steps.environment(pipeline).get("BUCKETS", "")
        return int(text) if text.isdecimal() and int(text) else parts.BUCKETS

    def _origin(self, places: Places, place: Place, packed: Packed, name: str, features: Step) -> Origin:
        source = next(each for each in packed.row.sources if each.path == name)
        commit, certain = places.put_by(place, source.sha256, packed.row.id)
        doubt = "" if certain else "it was put by this commit or an earlier one, whose pictures cannot be read any more"
        self._check("preprocess made a picture of this id from each source", True)
        return Origin(
            name=name,
            file=self._file(place.file.repo, place.file.path, place.member, commit, doubt),
            preprocess=self._steps.at(packed.pack.file),
            features=features,
            sha256=source.sha256,
            width=source.width,
            height=source.height,
            bytes=source.bytes,
            taken=source.taken,
        )

    def _lost(self, side: _Side, name: str, table: str) -> Origin:
        """An origin whose file or pack cannot be found."""
        self._check("preprocess made a picture of this id from each source", False)
        gone = "no pack of this commit holds it"
        unknown = Step(side.features, table.format("?"), note="the part of this picture is not known")
        return Origin(name, File(side.repo, "", note=gone), Step(side.preprocess, "", note=gone), unknown)

    def _check_table(self, side: _Side, features: Step) -> None:
        file = self._lineage.file(side.features, features.path, self._tile.commit)
        if file is None or file.bytes > _LARGEST_TABLE:
            return
        try:
            table: Images = read_images(io.BytesIO(self._lineage.read(file)))
        except StageError:
            return
        of = "query" if side.above else "neighbour"
        self._check(f"features computed a vector of the {of}", side.id in table.ids)
        self._check("features used the answer's model", table.model == self._tile.model)

    def _model(self) -> Model:
        spec = self._lineage.file("models", f"/{SPEC_FILE}", self._tile.commit)
        if spec is None:
            gone = File("models", f"/{MODEL_FILE}", note="no backbone is there at this commit")
            return Model(self._tile.backbone, self._tile.model, gone)
        try:
            described = parse_spec(self._lineage.read(spec))
            self._check("the backbone in models is the answer's", described.sha256 == self._tile.model)
        except StageError:
            self._check("the backbone in models is the answer's", False)
        commit, _ = Places(self._lineage, "models", "", self._tile.commit).put_by(Place(spec), "", "")
        file = self._file("models", f"/{MODEL_FILE}", "", commit, "")
        return Model(self._tile.backbone, self._tile.model, file)

    def _file(self, repo: str, path: str, member: str, commit: str, note: str) -> File:
        made = self._lineage.commit(repo, commit)
        if made is None:
            return File(repo, path, member, commit, note="its commit was squashed or deleted")
        return File(repo, path, member, commit, _began(made), made.author, made.description, note)

    def _check(self, statement: str, holds: bool) -> None:
        self._checks[statement] = holds and self._checks.get(statement, True)


def _began(made: Made | None) -> datetime | None:
    """The start of a commit, that of the original if it was imported."""
    return (made.original or made.started) if made else None
