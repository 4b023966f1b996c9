"""The demo, from an empty server to result sheets: pipelines, backbone, pictures, queries, and precision."""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipelines.analysis.measurement import evaluation
from pipelines.client.deployment import first_files
from pipelines.client.jobs.jobs import Job
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.commands.kit import library_setup
from pipelines.commands.kit.job_completion import UploadedNames
from pipelines.commands.kit.progress import counting, wait
from pipelines.commands.kit.terminal import display_path, files, say, say_all
from pipelines.errors import LookalikeError
from pipelines.library import ingest, picture_sources, quality, queries, result_sheets
from pipelines.library.datasets import samples
from pipelines.library.queries import QueryEntries
from pipelines.library.selection import NothingFoundError
from stages.files.packs import parse_pack
from stages.record.framing import unpadded
from stages.record.label_files import LabelRow, format_csv

LABELS = "samples.csv"
"""The file of the sample pictures' labels in the repo of labels."""


ASKED = 5
"""Pictures of the library to search for, if no others are named: as many as a sheet's grid shows."""


@dataclass(frozen=True, slots=True)
class DemoPictures:
    """The directory for the library, and the pictures to search for; None stands for some of the library's. labels: a
    file with labels of the library, if they are known."""

    images: Path
    queries: Path | None
    labels: bytes = b""


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """The outcome of a demo: all jobs, upstream first, the true names of its query entries, the files that it has put,
    and the number of files that could not be read."""

    jobs: list[Job]
    entries: list[str]
    put: tuple[UploadedNames, ...]
    unreadable: int


def demo_pictures(directory: Path, images: Path | None, queries: Path | None) -> DemoPictures:
    """The pictures of a demo with these options. The samples are written to a directory if they are needed."""
    if images is not None:
        return DemoPictures(images, queries)
    made = samples.write_samples(directory)
    labels = format_csv(LabelRow(name, samples.label_of(name)) for name in samples.library_names())
    return DemoPictures(made.library, queries or made.queries, labels)


def run(connection: Connection, wanted: DemoPictures) -> DemoOutcome:
    """Deploys the pipelines, pushes the default backbone if there is none, adds the library, puts the queries, and
    waits for the jobs. If everything is in place, the jobs skip every datum."""
    found = picture_sources.find([wanted.images])
    to_ask = picture_sources.choose_pictures(found.sources, ASKED)
    if wanted.queries is None and not to_ask:
        raise LookalikeError(f"{wanted.images} has no pictures to search for: name some with --queries")
    library_setup.deploy(connection)
    commits = library_setup.push_default_backbone(connection)
    labels = evaluation.edits(connection, {LABELS: wanted.labels}) if wanted.labels else []
    with counting("putting pictures", len(found.sources)) as report:
        added = ingest.add(connection, found.sources, report, beside={first_files.LABELS: labels})
    asking = queries.find([wanted.queries]) if wanted.queries else QueryEntries([to_ask])
    asked = queries.put(connection, asking)
    unreadable = found.unreadable | added.unreadable | asked.unreadable
    say_all(f"skipped {each}" for each in (*found.left_out, *asked.left_out))
    say_all(f"left out {path}: {reason}" for path, reason in unreadable.items())
    say(f"put {files(added.files)} into images and {files(asked.files)} into queries")
    put = UploadedNames("images", frozenset(added.names)), UploadedNames("queries", frozenset(asked.entries))
    jobs = wait(connection, [*commits, added.commit, asked.commit])
    return DemoOutcome(jobs, asked.entries, put, len(unreadable))


def remove(connection: Connection) -> dict[str, str]:
    """Removes the sample pictures, their labels and the sample queries. Returns what was done, in words, by commit."""
    done: dict[str, str] = {}
    labels = evaluation.removals(connection, LABELS)
    unlabelled = f"removed {LABELS} from {first_files.LABELS}" if labels else ""
    gone = ingest.forget(connection, samples.library_names(), beside={first_files.LABELS: labels})
    if gone is not None:
        done[gone.commit] = ", ".join(filter(None, (f"removed {files(gone.files)} from images", unlabelled)))
    elif labels:
        done[Repository(connection, first_files.LABELS).write(labels)] = unlabelled
    with contextlib.suppress(NothingFoundError):
        done[queries.remove(connection, [samples.QUERIES]).commit] = f"removed the query {samples.QUERIES}"
    return done


def sample_quality(connection: Connection, sheet: result_sheets.ResultSheet) -> dict[str, tuple[float, float]]:
    """precision@1 and @3 by method: how often the nearest neighbours of the sample queries carry the query's label, by
    our answers and by a plain colour histogram of the same normalised pictures."""
    lines = (sheet.directory / "neighbors.jsonl").read_text().splitlines()
    library = connection.retry(_pictures, connection, "preprocess", "/library/*/*.pack")
    asked = connection.retry(_pictures, connection, "preprocess-queries", "/queries/*/*.pack")
    ours = {path for line in lines for path in json.loads(line)["sources"]}
    verdicts = {
        "lookalike": quality.judge(lines, samples.label_of),
        "colour histogram": quality.judge_histogram(
            library, {path: picture for path, picture in asked.items() if path in ours}, 3, samples.label_of
        ),
    }
    return {name: (quality.precision(each, 1), quality.precision(each, 3)) for name, each in verdicts.items()}


def _pictures(connection: Connection, pipeline: str, pattern: str) -> Mapping[str, npt.NDArray[np.uint8]]:
    """The normalised pictures (H, W, 3), without padding, of a preprocess pipeline by their source paths."""
    repo = Repository(connection, pipeline).good()
    if repo is None:
        raise LookalikeError(f"{pipeline} has no good commit: see `lookalike status`")
    found: dict[str, npt.NDArray[np.uint8]] = {}
    for path, content in repo.read_all(pattern):
        for picture, framed in parse_pack(content, path).framed():
            found.update((source.path, unpadded(framed)) for source in picture.sources)
    return found


def say_next_steps(program: Path, has_samples: bool) -> None:
    """Prints the next commands, with the path of this one: its environment may not be active."""
    command = str(display_path(program)) if program.parent.name == "bin" else "lookalike"
    say("")
    say("The server keeps running. Next:")
    of_samples = (
        ("evaluate", "measure the search by the labels of the sample pictures"),
        ("demo --remove", "remove the sample pictures and queries"),
    )
    for arguments, meaning in (
        ("add PICTURE…", "add pictures to the library"),
        ("query PICTURE…", "search for look-alikes"),
        ("serve", "search in the browser"),
        *(of_samples if has_samples else ()),
        ("status", "show the state of every pipeline"),
        ("down", "stop the server (everything stays on disk)"),
    ):
        say(f"  {command} {arguments:<16}{meaning}")
