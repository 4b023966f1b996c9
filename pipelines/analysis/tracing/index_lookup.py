"""A picture of the index by its id or by the name of one of its files. Follows nothing."""

import io
import re

from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from stages.datum.contract import StageError
from stages.files.tables.index_table import TABLE, IndexTable, read_indexed

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
        table: IndexTable = read_indexed(io.BytesIO(content))
    except StageError as error:
        raise LookalikeError(f"{path} of index cannot be read: {error}") from error
    return [(id_, tuple(each.path for each in some)) for id_, some in zip(table.ids, table.sources, strict=True)]
