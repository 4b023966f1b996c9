"""The data set STL-10: its files in a directory, their split into library and queries, its labels; and all of them put
into the repos.

What one record is called follows from its file and number alone, however the set is split.
"""

import csv
import hashlib
import io
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.client.deployment.deployment import make_repo
from pipelines.client.deployment.first_files import LABELS
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import PutFile
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library import ingest, queries, snapshots
from pipelines.library.datasets.downloads import RemoteFile, download
from pipelines.library.picture_sources import PictureSource
from pipelines.specifications import overlays
from stages.decode.stl10 import RECORD, problem, record_name

ARCHIVE = RemoteFile(
    "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz",
    "stl10_binary.tar.gz",
    2_640_397_119,
    "91f7769df0f17e558f3565bffb0c7dfb",
)
WORD = "stl10"
UNLABELLED = "unlabeled_X.bin"
LABELLED = (("train_X.bin", "train_y.bin"), ("test_X.bin", "test_y.bin"))
CLASS_NAMES = "class_names.txt"
ENTRY = "stl10"
"""The query entry of its queries."""

_FILES = (UNLABELLED, *(name for pair in LABELLED for name in pair), CLASS_NAMES)


@dataclass(frozen=True, slots=True)
class Stl10Split:
    """The unlabelled pictures, split into library and queries."""

    library: list[PictureSource]
    queries: list[PictureSource]


def names_stl10(arguments: Sequence[str], data_dir: Path | None, options: Sequence[object]) -> bool:
    """Whether arguments of a command name the data set: the word stl10 alone. A path of that name is ./stl10.

    data_dir, options: what was given for the data set alone, or None. Raises LookalikeError where it is not clear what
    is meant.
    """
    if list(arguments) == [WORD]:
        if data_dir is None and Path(WORD).exists():
            raise LookalikeError(
                f"{WORD} is the name of the data set and of a path here: use ./{WORD} for the path, or "
                "--data-dir for the data set"
            )
        return True
    if WORD in arguments:
        raise LookalikeError(f"the data set {WORD} is added alone; use ./{WORD} for a path of that name")
    if data_dir is not None or any(each is not None for each in options):
        raise LookalikeError(f"--data-dir, --split and --seed are for the data set: `lookalike add {WORD}`")
    return False


def find(directory: Path) -> Path | None:
    """The directory of the extracted files at or below a directory, if they are there."""
    places = (directory, directory / "stl10_binary")
    return next((place for place in places if all((place / name).is_file() for name in _FILES)), None)


def fetch(directory: Path, report: Callable[[int], None] = lambda _: None, remote: RemoteFile = ARCHIVE) -> Path:
    """Brings the extracted files into a directory and returns where they are: from the archive if that lies there,
    otherwise from the web. `report` hears how many more bytes of the archive are here.

    Raises LookalikeError if the archive cannot be had or is damaged.
    """
    archive = download(remote, directory, report)
    target = directory / "stl10_binary"
    target.mkdir(exist_ok=True)
    try:
        with tarfile.open(archive) as members:
            for member in members:
                name = Path(member.name).name
                if name in _FILES and member.isfile():
                    # It gets its name once it is whole: an interrupted extraction must not pass for a good one.
                    member.name = f"{name}.part"
                    members.extract(member, target, filter="data")
                    (target / member.name).rename(target / name)
    except (tarfile.TarError, EOFError) as error:
        raise LookalikeError(f"{archive} is damaged ({error}): delete it and try again") from error
    missing = [name for name in _FILES if not (target / name).is_file()]
    if missing:
        raise LookalikeError(f"{archive} lacks {', '.join(missing)}: delete it and try again")
    return target


def split(place: Path, share: float, seed: int) -> Stl10Split:
    """The unlabelled pictures in the extracted files, that share of them for the library.

    The choice depends on the seed and their number only. Raises LookalikeError if either part would be empty.
    """
    path = place / UNLABELLED
    size = path.stat().st_size
    wrong = problem(UNLABELLED, size)
    if wrong:
        raise LookalikeError(f"{path}: {wrong}")
    count = size // RECORD
    asked = count - round(count * share)
    if not 0 < asked < count:
        raise LookalikeError(f"--split {share:g} of {count:,} pictures leaves the library or the queries empty")
    order = sorted(range(count), key=lambda number: hashlib.sha256(f"{seed}/{number}".encode()).digest())
    queries = set(order[:asked])
    sources = [PictureSource(record_name(UNLABELLED, number), path, RECORD, number * RECORD) for number in range(count)]
    return Stl10Split(
        [each for number, each in enumerate(sources) if number not in queries],
        [each for number, each in enumerate(sources) if number in queries],
    )


def labels(place: Path) -> bytes:
    """The labels of the labelled pictures as CSV with the columns source, label (counted from 1) and name.

    A source is the name that `lookalike add train_X.bin` gives the picture. Raises LookalikeError if pictures and
    labels do not fit together.
    """
    names = (place / CLASS_NAMES).read_text().split()
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("source", "label", "name"))
    for pictures, path in LABELLED:
        given = (place / path).read_bytes()
        if (place / pictures).stat().st_size != len(given) * RECORD or any(
            not 0 < each <= len(names) for each in given
        ):
            raise LookalikeError(f"{place / path} does not fit {pictures} and {CLASS_NAMES} beside it")
        table.writerows((record_name(pictures, number), each, names[each - 1]) for number, each in enumerate(given))
    return text.getvalue().encode()


OVERLAY = "stl10"
"""The overlay with the original experiment's parameters."""

_LABELS_FILE = "/stl10.csv"


def add(
    connection: Connection, split: Stl10Split, labels: bytes, report: Callable[[int], None] = lambda _: None
) -> dict[str, str]:
    """Puts the library's part in blocks into `images`, with the labels as CSV, and the queries in blocks as one entry.

    Library pictures of an earlier split that are queries now are removed from the library, since each would
    be its own nearest. `report` hears how many more pictures have been put. Returns what was done, in words, by commit.
    """
    commits: dict[str, str] = {}
    gone = ingest.forget(connection, [each.name for each in split.queries])
    if gone is not None:
        commits[gone.commit] = f"removed {gone.files:,} pictures, which are queries now, from {snapshots.REPO}"
    make_repo(connection, LABELS)
    beside = {LABELS: [PutFile(_LABELS_FILE, labels)]}
    library = ingest.add(connection, split.library, report, most_single=0, beside=beside)
    count = len(labels.splitlines()) - 1
    commits[library.commit] = f"put {library.files:,} pictures into {snapshots.REPO} and {count:,} labels into {LABELS}"
    asked = queries.put_in_blocks(connection, ENTRY, split.queries, report)
    commits[asked.commit] = f"put {asked.files:,} pictures as the entry {ENTRY} into {queries.REPO}"
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
