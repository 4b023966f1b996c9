"""What lists of pictures state beside the pictures: attributes, as a table, and labels, as a file of labels."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pipelines.client.deployment.deployment import has_repo
from pipelines.client.deployment.first_files import LABELS
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.commands.kit.terminal import say
from pipelines.commands.library import attributes
from pipelines.commands.library.attributes import table_name
from pipelines.errors import LookalikeError
from pipelines.library.attributes import attribute_repo
from pipelines.library.attributes.picture_keys import PictureKeys
from pipelines.library.attributes.table_files import StatedTable, attribute_name
from pipelines.library.remote import picture_urls
from pipelines.library.remote.picture_urls import RemoteOptions
from stages.datum.text_format import counted
from stages.files.attribute_files import RESERVED
from stages.record import label_files
from stages.record.label_files import LabelRow

_TYPED = (".parquet", ".tar", ".gz", ".tgz")
"""The endings of lists in which values have types."""

_LONGEST = 60
"""Characters of the name of a table."""

_LABELS = " (`lookalike classify add --labels FILE` puts labels)"


def put_labels(connection: Connection, paths: Sequence[str], labels: Mapping[str, str]) -> None:
    """Gives the pictures the labels that their lists state of them, as one file of the repo `labels`."""
    if not labels:
        return
    if not has_repo(connection, LABELS):
        say(f"{counted(len(labels), 'label is', 'labels are')} left out, since the library has no repo {LABELS}")
        return
    rows = [LabelRow(*each) for each in sorted(labels.items())]
    name = _name(paths)
    content = label_files.format_csv(each for each in rows if label_files.can_be_written(each))
    repo = Repository(connection, LABELS)
    if connection.retry(lambda: list(repo.read_all(f"/{name}.csv"))) != [(f"/{name}.csv", content)]:
        repo.write([PutFile(f"/{name}.csv", content)])
        say(f"{counted(len(rows), 'label', 'labels')} put into {LABELS} as {name}.csv")


def _name(paths: Sequence[str]) -> str:
    """A name for what these lists state, the same for the same ones."""
    files = [Path(urlsplit(each).path if picture_urls.is_url(each) else each) for each in paths]
    name = table_name("-".join(each.name.partition(".")[0] for each in files))
    if len(name) <= _LONGEST:
        return name
    return f"{name[:_LONGEST]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def put_attributes(
    connection: Connection, paths: Sequence[str], stated: Mapping[str, Mapping[str, Any]], options: RemoteOptions
) -> None:
    """Gives the pictures what the other columns of their lists state of them, as one table. stated: by picture and
    heading."""
    headings = dict.fromkeys(heading for each in stated.values() for heading in each)
    names = {heading: attribute_name(heading) for heading in headings}
    taken = [heading for heading, name in names.items() if name in RESERVED or not name]
    if taken:
        columns_left = counted(len(taken), "column is", "columns are")
        say(f"{columns_left} left out, since lookalike has its own meaning for {', '.join(taken)}{_LABELS}")
    columns = {
        name: [each.get(heading) for each in stated.values()] for heading, name in names.items() if heading not in taken
    }
    if not columns:
        return
    if not options.wait:
        say("the other columns of the lists become attributes when the same command waits for the pictures")
        return
    table = _name(paths)
    typed = all(Path(each).suffix.lower() in _TYPED for each in paths)
    made = StatedTable(table, [*range(1, len(stated) + 1)], [*stated], columns, has_types=typed)
    pictures = PictureKeys(connection.retry(attribute_repo.picture_paths, connection))
    try:
        attributes.put(connection, {table: made}, pictures, {}, keep_unknown=True, wait=True, yes=options.yes)
    except LookalikeError as error:
        raise LookalikeError(
            f"the pictures are in the library, but not what the lists state of them: {error}"
        ) from error
