"""Changes of the library for a service that this command runs, made as the commands make them, with the rights and in
the name of the person who started it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from pipelines.analysis.measurement import evaluation
from pipelines.analysis.measurement.copy_groups import read_contents
from pipelines.client import commit_owner
from pipelines.client.commit_writer import CommitWriter, MovedHeadError
from pipelines.client.deployment.deployment import has_repo, make_repo
from pipelines.client.deployment.first_files import LABELS
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.client.server.grpc_errors import explained
from pipelines.errors import LookalikeError
from pipelines.library import ingest, last_change
from pipelines.library.snapshots import REPO
from stages.serving.follow.refusals import Refusal, library_moved
from stages.serving.http.edit_door import LabelState


class CommandEditor:
    """Removes as `lookalike remove` does, labels as `lookalike classify add`, and takes back as `lookalike undo`. See
    LibraryEditor."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def remove(self, names: Sequence[str], head: str, description: str) -> str:
        """Removes all of them by one commit. Raises Refusal."""
        with _refused("not-removable", "these files cannot be removed"):
            contents = partial(read_contents, self._connection)
            return ingest.remove_on(self._connection, names, head, _signed(description), contents).commit

    def labels(self) -> LabelState:
        """The labels at their newest commit. Raises Refusal."""
        with _refused("no-labels", "the labels cannot be read"):
            images = CommitWriter(self._connection, REPO).newest()
            there = has_repo(self._connection, LABELS)
            labels = CommitWriter(self._connection, LABELS).newest() if there else ""
            return LabelState(images, labels, evaluation.labels_files(self._connection, labels) if labels else {})

    def put_labels(self, files: Mapping[str, bytes], onto: LabelState, description: str) -> str:
        """Writes all of them by one commit. Raises Refusal."""
        with _refused("not-labelled", "nothing was labelled"):
            if CommitWriter(self._connection, REPO).newest() != onto.images:
                raise library_moved()
            make_repo(self._connection, LABELS)
            edits = [PutFile(f"/{name}", content) for name, content in sorted(files.items())]
            written = Repository(self._connection, LABELS)
            return written.write(edits, description=_signed(description), onto=onto.labels)

    def take_back(self, commit: str) -> tuple[str, str]:
        """Takes a commit back if it is the last change. Raises Refusal."""
        with _refused("not-undone", "nothing was taken back"):
            change = last_change.read(self._connection)
            made = change[0].made
            if change[0].set != commit:
                later = ": ".join(filter(None, (made.author, made.description))) or made.id
                reason = f"another change is the last one now ({later}), so nothing was taken back: `lookalike undo`"
                raise Refusal(409, "moved", f"{reason} shows it")
            taken = last_change.take_back(self._connection, change, _signed(f"Take back: {made.description}"))
            return taken, made.description


def _signed(description: str) -> str:
    """A description of a commit that begins with its author."""
    return f"{commit_owner.current_process()} {description}"


@contextmanager
def _refused(code: str, what: str) -> Iterator[None]:
    """A failure of Pachyderm or of the command as the service's refusal."""
    try:
        with explained():
            yield
    except MovedHeadError as error:
        raise library_moved() from error
    except LookalikeError as error:
        raise Refusal(409, code, f"{what}: {error}") from error
