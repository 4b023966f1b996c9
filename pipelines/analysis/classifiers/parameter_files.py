"""Files of parameters: read strictly on this machine, put into the repo `parameters`, and removed from it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pipelines.analysis.measurement.evaluation import read_named
from pipelines.client.deployment.deployment import make_repo
from pipelines.client.deployment.first_files import PARAMETERS
from pipelines.client.repository import DeleteFile, FileEdit, PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.specifications.findings import did_you_mean
from stages.classify.training.training_parameters import SUFFIX, parse
from stages.datum.contract import StageError


def check(files: Sequence[Path]) -> dict[str, bytes]:
    """The content of files by name. Raises LookalikeError if one cannot be read or is not valid, naming the field and
    its range or the nearest name, or if two have one name."""
    found = read_named(files)
    for name, content in found.items():
        try:
            parse(name, content)
        except StageError as error:
            raise LookalikeError(f"nothing was put: {error}") from error
    return found


def change(connection: Connection, files: Mapping[str, bytes], remove: Sequence[str] = ()) -> str:
    """Puts files over those of the same names and removes the runs of other names, as one commit; returns its id, "" if
    all is so already.

    Raises LookalikeError for a name to remove that is not there or is put as well, and if no file would be left.
    """
    make_repo(connection, PARAMETERS)
    there = connection.retry(Repository(connection, PARAMETERS).contents)
    gone = [each if each.endswith(SUFFIX) else f"{each}{SUFFIX}" for each in remove]
    for name in gone:
        if name not in there:
            fix = did_you_mean(name, there, f"there are {', '.join(sorted(there)) or 'none'}")
            raise LookalikeError(f"{PARAMETERS} has no file {name} to remove: {fix}")
        if name in files:
            raise LookalikeError(f"{name} is both put and removed: leave out one of the two")
    if gone and not {*there, *files} - {*gone}:
        raise LookalikeError("a training needs a file of parameters: put another one before this one is removed")
    changed = [PutFile(f"/{name}", content) for name, content in files.items() if there.get(name) != content]
    edits: list[FileEdit] = [*changed, *(DeleteFile(f"/{name}") for name in gone)]
    return Repository(connection, PARAMETERS).write(edits) if edits else ""
