"""A library whose map is on a real localpachd: a repo in place of the pipeline, with places that a test gives."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.client.repository import PutFile, Repository
from pipelines.client.server import connection as connections
from pipelines.client.server.connection import Connection, ServerTarget
from stages.files.tables.map_table import SUFFIX, MapTable
from stages.serving.follow.map_listings import REPO, MapListings
from stages.serving.follow.pachyderm_client import PachydermAddress, PachydermClient
from tests.servers import Localpachd

if TYPE_CHECKING:
    from stages.serving.follow.snapshots import Snapshot

Place = tuple[float, float, int]
"""x, y and the cluster of a picture."""


def connect(pachd: Localpachd) -> Connection:
    return connections.connect(ServerTarget(pachd.address))


def of(pachd: Localpachd, snapshot: Snapshot) -> Snapshot:
    """The snapshot with the map that the server has."""
    return replace(snapshot, maps=MapListings(PachydermClient(PachydermAddress(pachd.address))))


def write(pachd: Localpachd, snapshot: Snapshot, place: Callable[[str], Place], stale: str = "") -> str:
    """Commits the map of a library. place: gives that of the picture with a first path; stale: no picture has one."""
    library, edits = snapshot.library, []
    for segment in snapshot.library.segments:
        ids = [] if stale else [segment.id(row) for row in range(len(segment))]
        rows = [library.row(id) for id in ids]
        places = [place(library.sources(row)[0].path) for row in rows if row is not None]
        columns = dict(zip(("x", "y", "clusters"), zip(*places, strict=True), strict=True)) if places else _NOTHING
        table = MapTable(ids=ids, **columns, origin=library.origin, stale=stale)
        with tempfile.TemporaryDirectory() as scratch:
            table.write(Path(scratch, "map"))
            edits.append(PutFile(f"/{segment.name}{SUFFIX}", Path(scratch, "map").read_bytes()))
    return Repository(connect(pachd), REPO).write(edits)


_NOTHING: Mapping[str, list[float]] = {"x": [], "y": [], "clusters": []}
