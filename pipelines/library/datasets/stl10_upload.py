"""STL-10 put into the repos: pictures into `images`, one entry into `queries`, its labels into `labels`."""

from collections.abc import Callable

from pipelines.client.deployment.deployment import make_repo
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.library import ingest, queries, snapshots
from pipelines.library.datasets import stl10
from pipelines.library.datasets.stl10 import Stl10Split
from pipelines.specifications import overlays

OVERLAY = "stl10"
"""The overlay with the original experiment's parameters."""

LABELS = "labels"
_LABELS_FILE = "/stl10.csv"


def add(
    connection: Connection, split: Stl10Split, labels: bytes, report: Callable[[int], None] = lambda _: None
) -> dict[str, str]:
    """Puts the library's part in blocks into `images`, the queries in blocks as one entry, the labels as CSV.

    Library pictures of an earlier split that are queries now are removed from the library, since each would
    be its own nearest. `report` hears how many more pictures have been put. Returns what was done, in words, by commit.
    """
    commits: dict[str, str] = {}
    gone = ingest.forget(connection, [each.name for each in split.queries])
    if gone is not None:
        commits[gone.commit] = f"removed {gone.files:,} pictures, which are queries now, from {snapshots.REPO}"
    library = ingest.add(connection, split.library, report, most_single=0)
    commits[library.commit] = f"put {library.files:,} pictures into {snapshots.REPO}"
    asked = queries.put_in_blocks(connection, stl10.ENTRY, split.queries, report)
    commits[asked.commit] = f"put {asked.files:,} pictures as the entry {stl10.ENTRY} into {queries.REPO}"
    make_repo(connection, LABELS)
    written = Repository(connection, LABELS).write([PutFile(_LABELS_FILE, labels)])
    commits[written] = f"put {len(labels.splitlines()) - 1:,} labels into {LABELS}"
    return commits


def differences(connection: Connection) -> list[str]:
    """The parameters of the deployed pipelines that are not the original experiment's, in words; none before the
    deployment."""
    deployed = ProjectJobs(connection).pipelines()
    found = []
    for name, patch in overlays.load(OVERLAY).pipelines.items():
        if name in deployed:
            has = deployed[name].details.transform.env
            wanted = patch.value["transform"]["env"]
            found += [
                f"{name} has {variable}={has.get(variable, '')}, the original experiment {variable}={value}"
                for variable, value in wanted.items()
                if has.get(variable, "") != value
            ]
    return found
