"""Searches by vectors that people have put, on this machine: of pictures of the library alone, since no model is
needed for these. The answers are those of a service of the same index."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pipelines.client.server.connection import ServerTarget
from pipelines.errors import LookalikeError
from stages.datum.contract import StageError
from stages.datum.file_cache import FileCache, default_place
from stages.files.question import Question, validated
from stages.knn.search_settings import read_settings
from stages.serving.follow.index_source import VECTORS, IndexSource
from stages.serving.follow.pachyderm_client import PachydermAddress, PachydermClient, PachydermError


def nearest(
    server: ServerTarget, ids: Sequence[str], question: Mapping[str, Any], say: Callable[[str], None]
) -> list[list[dict[str, Any]]]:
    """For each picture the nearest, as a question says: `id`, `distance` and the paths of the `sources` of each. Raises
    LookalikeError for a picture that has no vector, and without an index."""
    address = PachydermAddress(server.address, server.project, server.token, server.root_certificates)
    cache, settings = FileCache(default_place()), read_settings(os.environ)
    try:
        asked = validated(Question, question)
        source = IndexSource(PachydermClient(address), cache, settings, os.environ, say, repo=VECTORS)
        newest = source.newest()
        held = None if newest.commit is None else source.open(newest.commit, None, lambda _: None)
        if held is None:
            raise LookalikeError(newest.message or source.empty)
        library = held.library
        rows = [library.row(each) for each in ids]
        if None in rows:
            raise LookalikeError(
                f"the picture {ids[rows.index(None)]} has no vector: `lookalike vectors list --missing` lists such ones"
            )
        within = library.attributes.pictures(asked.where, asked.filter) if asked.where or asked.filter else None
        points = library.vectors(np.array(rows, np.int64))
        found = held.searching.search(points, asked.k, known=rows, within=within).topk
        held.searching.close()
    except (StageError, PachydermError) as error:
        raise LookalikeError(str(error)) from error
    return [
        [
            {"id": library.id(row), "distance": distance, "sources": [each.path for each in library.sources(row)]}
            for row, distance in zip(of.tolist(), distances.tolist(), strict=True)
            if row >= 0
        ]
        for of, distances in zip(found.rows, found.distances, strict=True)
    ]
