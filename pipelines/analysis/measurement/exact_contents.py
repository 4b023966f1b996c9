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

    def read() -> dict[str, str]:
        index = Repository(connection, "index").good()
        found: dict[str, str] = {}
        for _, content in () if index is None else index.read_all(f"/*/{TABLE}"):
            rows = read_sources(io.BytesIO(content))
            found |= {each.sha256: each.pixels for sources in rows for each in sources if each.pixels}
        return found

    return connection.retry(read)
