"""The labelled pictures that the last training did not have, where trainings read the branch `train`.

Only segments that differ are read: tables of labelled pictures hold thumbnails.
"""

from pipelines.analysis.classifiers.experiments import LABELLED
from pipelines.client.commit_tree import CommitTree, TreeEntry
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from stages.datum.contract import StageError
from stages.datum.file_cache import FileCache, default_place
from stages.files.tables.label_table import read_labelled

_TABLES = "/*.parquet"

LabelledPictures = set[tuple[str, str]]
"""The ids of pictures, each with its label."""


def count(connection: Connection, trained: str, newest: str, store: FileCache | None = None) -> int:
    """The number of pictures in one commit of `labelled` that are not in another, or have another label there. trained:
    "" for none at all."""
    store = store or FileCache(default_place())
    old = [] if not trained else CommitTree(connection, LABELLED, trained).entries(_TABLES)
    new = CommitTree(connection, LABELLED, newest)
    known = {(each.path, each.hash) for each in old}
    different = [each for each in new.entries(_TABLES) if (each.path, each.hash) not in known]
    before = {each.path: each for each in old}
    with store.scratch() as scratch:

        def read(commit: str, entry: TreeEntry) -> LabelledPictures:
            path = scratch / entry.hash
            CommitTree(connection, LABELLED, commit).place(store, entry, path)
            try:
                table = read_labelled(path)
            except StageError as error:
                raise LookalikeError(f"{entry.path} of {LABELLED}: {error}") from error
            return set(zip(table.ids, table.labels, strict=True))

        found = sum(
            len(read(newest, each) - (read(trained, before[each.path]) if each.path in before else set()))
            for each in different
        )
    store.trim()
    return found
