"""Searches by vectors that people have put, on this machine: of pictures of the library alone, since no model is
needed for these. The answers are those of a service of the same index."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pipelines.client.server.connection import ServerTarget
from pipelines.errors import LookalikeError
from pipelines.library.attributes.picture_keys import AmbiguousKeyError, PictureKeys
from stages.datum.contract import StageError
from stages.datum.file_cache import FileCache, default_place
from stages.knn.search_settings import read_settings
from stages.serving.follow.index_source import VECTORS, IndexSource
from stages.serving.follow.pachyderm_client import PachydermAddress, PachydermClient, PachydermError
from stages.serving.search.mapped_library import MappedLibrary


def nearest(
    server: ServerTarget, pictures: Sequence[str], k: int, filter: str, where: str, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """For each picture, by id or path, the k nearest: `id`, `path` and `neighbors`, each with `id`, `distance` and the
    paths of its `sources`. Raises LookalikeError for a picture that has no vector, and without an index."""
    address = PachydermAddress(server.address, server.project, server.token, server.root_certificates)
    try:
        settings = read_settings(os.environ)
        source = IndexSource(
            PachydermClient(address), FileCache(default_place()), settings, os.environ, say, repo=VECTORS
        )
        newest = source.newest()
        held = None if newest.commit is None else source.open(newest.commit, None, lambda _: None)
        if held is None:
            raise LookalikeError(newest.message or source.empty)
        library = held.library
        rows = [_row(library, each) for each in pictures]
        points = library.vectors(np.array(rows, np.int64))
        within = library.attributes.pictures(where, filter) if where or filter else None
        found = held.searching.search(points, k, known=rows, within=within).topk
        held.searching.close()
    except (StageError, PachydermError) as error:
        raise LookalikeError(str(error)) from error
    return [
        {
            "id": library.id(row),
            "path": library.sources(row)[0].path,
            "neighbors": [
                _told(library, near, distance)
                for near, distance in zip(found.rows[at].tolist(), found.distances[at].tolist(), strict=True)
                if near >= 0
            ],
        }
        for at, row in enumerate(rows)
    ]


def _told(library: MappedLibrary, row: int, distance: float) -> dict[str, Any]:
    return {"id": library.id(row), "distance": distance, "sources": [each.path for each in library.sources(row)]}


def _row(library: MappedLibrary, name: str) -> int:
    row = library.row(name)
    if row is not None:
        return row
    of = {each.path: row for row in range(len(library)) for each in library.sources(row)}
    try:
        path = PictureKeys(of).find(name)
    except AmbiguousKeyError as error:
        raise LookalikeError(f"{len(error.paths):,} pictures are called {name}: name the folder, too") from error
    if not path:
        raise LookalikeError(
            f"no picture called {name} has a vector: `lookalike vectors list --missing` lists those of the library "
            "that have none"
        )
    return of[path]
