"""The contents of the library's files, by which exact copies are told from others, as the index knows them."""

import io
from collections.abc import Mapping

from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from stages.files.tables.image_table import read_sources
from stages.files.tables.index_table import TABLE


def read_contents(connection: Connection) -> Mapping[str, str]:
    """What is equal for exact copies (stages.record.sources.Source.content), by the SHA-256 of the file, of those whose
    copies need not have equal bytes. Empty without an index."""
    index = Repository(connection, "index").good()
    tables = () if index is None else index.read_all(f"/*/{TABLE}")
    every = (each for _, table in tables for sources in read_sources(io.BytesIO(table)) for each in sources)
    return {each.sha256: each.pixels for each in every if each.pixels}
