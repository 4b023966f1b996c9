"""The map of the newest good commit of `map`, brought here when it is asked for, as points of the library that answers.

A segment's table is kept by its hash, so only changed ones travel. Knows no HTTP.
"""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stages.files.layout_files import FACTS, REPO as LAYOUTS
from stages.files.tables.map_table import SUFFIX, MapTable
from stages.serving.follow.pachyderm_client import Absent, PachydermClient
from stages.serving.search.map_points import MapPoints
from stages.serving.search.mapped_library import MappedLibrary

REPO = "map"

NO_MAP = "nobody has laid out this library as a map yet: run `lookalike map fit`"


@dataclass(frozen=True)
class LibraryMap:
    """The map of one commit for one library. commit: of `map`. layout: facts about the layout, see layout.json. stale:
    why pictures have no place, "" if all have one. marks: what is made of clusters once, for answers."""

    commit: str
    library: MappedLibrary
    points: MapPoints
    layout: Mapping[str, Any]
    stale: str
    marks: dict[str, Any] = field(default_factory=dict)


class MapListings:
    """The maps of one Pachyderm. May be used from several threads."""

    def __init__(self, server: PachydermClient) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._tables: dict[str, MapTable] = {}
        self._held: LibraryMap | None = None

    def of(self, library: MappedLibrary, commit: str = "") -> LibraryMap:
        """The newest map of a library; the one that is held, without a look at the server, if it has this commit.
        Raises Absent without one, PachydermError, and StageError for what the stage map did not write."""
        with self._lock:
            held = self._held
            if held is not None and held.library is library and held.commit == commit:
                return held
            newest = self._server.newest(REPO)
            files = [] if newest is None else self._server.files(REPO, newest.id, f"/*{SUFFIX}")
            if newest is None or not files:
                raise Absent(NO_MAP)
            if held is None or held.library is not library or held.commit != newest.id:
                self._tables = {
                    each.hash: self._tables.get(each.hash) or self._read(newest.id, each.path) for each in files
                }
                named = {each.path.removesuffix(SUFFIX): self._tables[each.hash] for each in files}
                layout = self._server.provenance(newest).get(LAYOUTS, "")
                facts = json.loads(b"".join(self._server.read(LAYOUTS, layout, FACTS))) if layout else {}
                stale = next((each.stale for each in named.values() if each.stale), "")
                self._held = LibraryMap(newest.id, library, _points(library, named), facts, stale)
            return self._held  # type: ignore[return-value]

    def _read(self, commit: str, path: str) -> MapTable:
        return MapTable.read(io.BytesIO(b"".join(self._server.read(REPO, commit, path))))


def _points(library: MappedLibrary, tables: Mapping[str, MapTable]) -> MapPoints:
    """The pictures of the library that have a place. A map may be of an older or newer index than the library."""
    places, clusters, rows = [np.empty((0, 2), np.float32)], [np.empty(0, np.int32)], [np.empty(0, np.int64)]
    for start, segment in zip(library.starts, library.segments, strict=False):
        table = tables.get(segment.name)
        if table is None or not len(table):
            continue
        ids = np.array(list(table.ids), "S64")
        at = np.minimum(np.searchsorted(segment.ids, ids), len(segment) - 1)
        there = segment.ids[at] == ids
        places.append(np.column_stack([table.x, table.y])[there].astype(np.float32))
        clusters.append(np.asarray(table.clusters, np.int32)[there])
        rows.append(start + at[there])
    return MapPoints(np.concatenate(places), np.concatenate(clusters), np.concatenate(rows))
