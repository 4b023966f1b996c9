"""The main job from nothing to result sheets: pipelines, backbone, pictures, queries, and how good the answers are."""

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console

from pipelines import deploy, ingest, models, pictures, quality, results, samples, specs
from pipelines.connection import Connection
from pipelines.display import JobProgress, counting
from pipelines.jobs import Job, Jobs
from pipelines.repository import Repository

BACKBONE = "efficientnet-lite0"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a demo produced: all jobs, upstream first, the exported sheets, and the quality where labels are known."""

    jobs: list[Job]
    sheets: list[results.Sheet]
    quality: dict[str, tuple[float, float]]
    """precision@1 and precision@3 by method."""


def run(
    connection: Connection, console: Console, images: Path | None, queries: Path | None, scratch: Path, to: Path
) -> Outcome:
    """Runs it all; without `images` and `queries` on the sample pictures, whose names are their labels."""
    labelled = images is None and queries is None
    if images is None or queries is None:
        made = samples.write_samples(scratch)
        images, queries = images or made.library, queries or made.queries
    for each in deploy.deploy(connection, specs.load()):
        console.print(f"{each.kind} {each.name}: {each.action}", highlight=False)
    pushed = models.push(Repository(connection, models.REPO), BACKBONE)
    console.print(f"backbone {pushed.spec.name}: {'pushed' if pushed.commit else 'unchanged'}", highlight=False)
    found = pictures.find([images])
    with counting(console, "putting pictures", len(found)) as report:
        added = ingest.Library(connection).add(found, report)
    entries, asked = ingest.put_queries(connection, [queries])
    console.print(f"put {added.files} library files and {asked.files} query files", highlight=False)
    done = wait(connection, console, [commit for commit in (pushed.commit, added.commit, asked.commit) if commit])
    sheets = results.export(connection, to, entries)
    return Outcome(done, sheets, _quality(connection, entries[0]) if labelled else {})


def wait(connection: Connection, console: Console, commits: list[str]) -> list[Job]:
    """Waits for every job of some commit sets, showing what they do."""
    with JobProgress(console) as progress:
        return Jobs(connection).watch(commits, progress.look)


def _quality(connection: Connection, entry: str) -> dict[str, tuple[float, float]]:
    """How often the nearest neighbours carry the query's label, by our answers and by a plain colour histogram of the
    same normalised pictures."""
    lines = Repository(connection, "render").read(f"/{entry}/neighbors.jsonl").decode().splitlines()
    library = dict(_packed(Repository(connection, "preprocess"), "/library/*/*.npy"))
    queries = dict(_packed(Repository(connection, "preprocess-queries"), f"/queries/{entry}/*.npy"))
    verdicts = {
        "lookalike": quality.judge(lines, samples.label_of),
        "colour histogram": quality.judge_histogram(library, queries, 3, samples.label_of),
    }
    return {name: (quality.precision(each, 1), quality.precision(each, 3)) for name, each in verdicts.items()}


def _packed(repo: Repository, pattern: str) -> Iterator[tuple[str, npt.NDArray[np.uint8]]]:
    """The normalised pictures (H, W, 3) of all packs that match, with each of their source paths."""
    for info in repo.glob(pattern):
        pixels = np.load(io.BytesIO(repo.read(info.file.path)))
        facts = repo.read(info.file.path.removesuffix(".npy") + ".jsonl").decode().splitlines()
        for picture, fact in zip(pixels, facts, strict=True):
            for source in json.loads(fact)["sources"]:
                yield source["path"], picture
