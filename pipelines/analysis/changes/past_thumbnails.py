"""The small pictures of answers of an earlier time, from the tables of features-queries and search of then."""

from collections.abc import Collection, Iterator

from pipelines.analysis.changes.library_state import LibraryState
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from stages.datum.contract import StageError
from stages.files.tables.table_thumbnails import read_thumbnails
from stages.files.thumbnail_files import SUFFIX
from stages.record import entry_paths

_TABLE = ".parquet"


def of_entry(connection: Connection, state: LibraryState, entry: str, ids: Collection[str]) -> dict[str, bytes]:
    """The JPEG files of these pictures, the queries of an entry (a PFS name) and their neighbours, by id. Those that no
    sheet shows, and those of tables that cannot be read, are missing."""
    found: dict[str, bytes] = {}
    for pipeline, pattern in _tables(entry):
        if pipeline in state.commits:
            repo = Repository(connection, pipeline, state.commits[pipeline])
            files = dict(repo.read_all(pattern))
            for path in (each for each in files if each.endswith(_TABLE)):
                try:
                    thumbnails = read_thumbnails(
                        files[path], path, files.get(f"{path.removesuffix(_TABLE)}{SUFFIX}", b"")
                    )
                except StageError:  # another version's: the page shows the name
                    continue
                found |= {id_: thumbnails[id_] for id_ in thumbnails.keys() & ids}
    return found


def _tables(entry: str) -> Iterator[tuple[str, str]]:
    """The repos and the patterns of the tables that hold the pictures of an entry, or have them beside them."""
    yield "features-queries", f"/{entry_paths.directory(entry)}/images.*"
    yield "features-queries", f"/queries/{entry}/images.parquet"  # of versions without buckets
    yield "search", f"/{entry}/*.parquet"
