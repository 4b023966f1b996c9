"""The repo `attributes` as commands read and write it: all tables with their schema, in one commit."""

import io
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from pipelines.client.commit_writer import CommitWriter, MovedHeadError
from pipelines.client.deployment import deployment
from pipelines.client.deployment.first_files import ATTRIBUTES
from pipelines.client.repository import DeleteFile, FileEdit, PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from stages.datum.contract import StageError
from stages.files.tables.annotation_table import TYPE_NAMES, read_annotations, write_annotations
from stages.files.tables.image_table import read_sources
from stages.record.attribute_schema import DIRECTORY, INTEGER, NUMBER, SCHEMA, SUFFIX, format_schema


@dataclass(frozen=True)
class AttributeRepo:
    """The tables by name at a commit, "" for none."""

    commit: str
    tables: Mapping[str, pa.Table]

    @property
    def types(self) -> dict[str, str]:
        """The type of each attribute in all tables together."""
        found: dict[str, str] = {}
        for table in self.tables.values():
            for name in table.schema.names[1:]:
                type = TYPE_NAMES[table.schema.field(name).type]
                found[name] = NUMBER if {found.get(name, type), type} == {INTEGER, NUMBER} else type
        return dict(sorted(found.items()))


def read(connection: Connection) -> AttributeRepo:
    """The newest tables; none without the repo. Raises LookalikeError for a file that no command wrote."""
    repo = Repository(connection, ATTRIBUTES)
    if not connection.retry(repo.exists, "/"):
        return AttributeRepo("", {})
    commit = CommitWriter(connection, ATTRIBUTES).newest()
    tables = {}
    try:
        for path, content in Repository(connection, ATTRIBUTES, commit).read_all(f"/{DIRECTORY}/*{SUFFIX}"):
            tables[path.rpartition("/")[2].removesuffix(SUFFIX)] = read_annotations(io.BytesIO(content))
    except StageError as error:
        raise LookalikeError(f"a file of {ATTRIBUTES}: {error}: remove it with `pachctl delete file`") from error
    return AttributeRepo(commit, tables)


def write(connection: Connection, before: AttributeRepo, after: Mapping[str, pa.Table]) -> str:
    """Puts tables that are new or changed, removes the others, and puts the schema of all, in one commit; returns its
    id, "" if nothing changes. Raises LookalikeError if others have changed the tables since they were read."""
    edits: list[FileEdit] = [DeleteFile(f"/{DIRECTORY}/{name}{SUFFIX}") for name in before.tables.keys() - after.keys()]
    for name, table in after.items():
        if name not in before.tables or not table.equals(before.tables[name]):
            content = io.BytesIO()
            write_annotations(table, content)
            edits.append(PutFile(f"/{DIRECTORY}/{name}{SUFFIX}", content.getvalue()))
    if not edits:
        return ""
    deployment.make_repo(connection, ATTRIBUTES)
    edits.append(PutFile(f"/{SCHEMA}", format_schema(AttributeRepo("", after).types)))
    try:
        return Repository(connection, ATTRIBUTES).write(edits, onto=before.commit or None)
    except MovedHeadError as error:
        raise LookalikeError("the attributes have changed meanwhile, and nothing was put: run this again") from error


def picture_paths(connection: Connection) -> set[str]:
    """The true paths of all files of pictures in the newest index; none without one."""
    index = connection.retry(Repository(connection, "index").good)
    found: set[str] = set()
    for _, content in () if index is None else index.read_all("/*/images.parquet"):
        found.update(read_sources(io.BytesIO(content)).paths)
    return found
