"""One more labelled picture in a library with classifiers, on localpachd: `python -m studies.retraining --help`.

The sample pictures of `lookalike demo` are labelled with their photographs. One after another, pictures whose labels
are known already are added; each must be computed alone, and everything must be trained again.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.kit import program, servers
from benchmarks.kit.engine import Settled, Work, longest, settle
from benchmarks.kit.report import Result, Row, line
from pipelines.analysis.classifiers import experiments, parameter_files
from pipelines.analysis.measurement import optional_deployment
from pipelines.client.deployment import deployment, first_files
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection, ServerTarget, connect
from pipelines.errors import LookalikeError
from pipelines.library import backbone_push, ingest, picture_sources
from pipelines.library.datasets import samples
from pipelines.library.picture_sources import PictureSource
from pipelines.specifications import optional_specs, pipeline_specs, specs_directory
from stages.record.label_files import LabelRow as Label, format_csv

PACKAGES = ("numpy", "tensorflow", "keras", "grpcio", "protobuf", "python-pachyderm")

BACKBONE = "efficientnet-lite0"
RUNS = {"linear.json": b"{}", "mlp.json": json.dumps({"head": "mlp"}).encode()}
EXPECTED = {
    **dict.fromkeys(("preprocess", "features", "partition", "index", "labelled"), 1),
    "train": len(RUNS),
    "select": 1,
}
"""The datums of one more labelled picture. The index is the search's, which the classifiers do not read."""

MOST_ENGINE = 0.1
"""The goal for the share of the time in which no user code runs."""


@dataclass(frozen=True, slots=True)
class Added:
    """One picture added: the seconds from before the put until the end of the last job, and each pipeline's work."""

    seconds: float
    works: tuple[Work, ...]

    @property
    def user(self) -> float:
        """The least seconds in which user code ran: those of the longest chain of pipelines."""
        specs = [
            *pipeline_specs.load(specs_directory.current()),
            *optional_specs.required_specs(specs_directory.current(), experiments.GROUP),
        ]
        return longest({each.pipeline: each.user for each in self.works}, {each.name: each.repos for each in specs})

    @property
    def engine(self) -> float:
        """The share of the time in which no user code ran, at most."""
        return 1 - self.user / self.seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints the table; 1 if a result is wrong."""
    parser = argparse.ArgumentParser(prog="python -m studies.retraining", description=__doc__)
    parser.add_argument("--rounds", type=program.positive, default=3, help="pictures to add; the quickest counts")
    given = program.parse(parser, (), arguments)
    given.sections = ["one more labelled picture"]
    program.exit_on_sigterm()
    try:
        program.run(given, lambda name: _result(name, measure(given.rounds)), PACKAGES, beside="user code")
    except (LookalikeError, RuntimeError) as error:
        print(f"studies.retraining: {error}", file=sys.stderr)
        return 1
    return 0


def measure(rounds: int) -> Added:
    """The quickest of several pictures added one after another to a server of its own. Raises RuntimeError if a job
    fails, or if anything else is computed than what depends on the picture."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch, servers.localpachd() as server:
        place = Path(scratch)
        connection = connect(ServerTarget(f"grpc://127.0.0.1:{server.port}"))
        sources = picture_sources.find([samples.write_samples(place / "samples").library]).sources
        later, first = sources[:rounds], sources[rounds:]
        _begin(connection, first, [*first, *later])
        return min((_add(connection, source) for source in later), key=lambda each: each.seconds)


def _begin(connection: Connection, first: Sequence[PictureSource], known: Sequence[PictureSource]) -> None:
    """Deploys everything, labels the `known` pictures, adds the `first`, and waits for the trainings."""
    deployment.deploy(connection, pipeline_specs.load(specs_directory.current()))
    commits = [backbone_push.push(connection, BACKBONE).commit]
    deployment.make_repo(connection, first_files.LABELS)
    rows = [Label(each.name, samples.label_of(each.name)) for each in known]
    commits.append(
        Repository(connection, first_files.LABELS).write([PutFile(first_files.LABELS_FILE, format_csv(rows))])
    )
    commits.append(parameter_files.change(connection, RUNS))
    settle(connection, [*commits, ingest.add(connection, first).commit])
    settle(connection, optional_deployment.deploy(connection, experiments.GROUP))


def _add(connection: Connection, source: PictureSource) -> Added:
    begun = time.time()
    settled: Settled = settle(connection, [ingest.add(connection, [source]).commit])
    computed = {each.pipeline: each.processed for each in settled.works if each.processed}
    if computed != EXPECTED:
        raise RuntimeError(f"one more labelled picture computed the datums {computed} instead of {EXPECTED}")
    return Added(settled.ended - begun, settled.works)


def _result(name: str, added: Added) -> Result:
    goal, met = f"engine at most {MOST_ENGINE:.0%}", added.engine <= MOST_ENGINE
    whole = line(f"{name}; engine {added.engine:.1%}", added.seconds, added.user, "s", goal, met)
    each = tuple(
        line(f"{work.pipeline}: {work.processed} computed, {work.skipped} not", work.wall, work.user, "s", digits=2)
        for work in added.works
        if work.processed
    )
    rows = (Row(name, "ours", added.seconds), Row(name, "user code", added.user))
    return Result(rows, (whole, *each))


if __name__ == "__main__":
    sys.exit(main())
