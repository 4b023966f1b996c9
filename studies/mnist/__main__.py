"""MNIST through the pipelines, beside plain Keras: `python -m studies.mnist --help`.

On a localpachd of its own the training digits are added with `lookalike classify add`, trained with `lookalike classify
train`, and promoted; the service then classifies the test digits. Plain Keras trains the same network for as many
epochs. Last, one more labelled digit is added. Figures are of processor time, which other work on the machine hardly
changes.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks.kit import program, servers
from benchmarks.kit.engine import settle
from benchmarks.kit.report import Line, Result, Row, line
from benchmarks.kit.servers import Server
from benchmarks.kit.trees import Usage
from pipelines.analysis.classifiers import experiments
from pipelines.client.deployment import deployment
from pipelines.client.server.connection import Connection, ServerTarget, connect
from pipelines.errors import LookalikeError
from pipelines.library import backbone_push
from pipelines.specifications import drafts, optional_specs, overlays, pipeline_specs, specs_directory
from studies.mnist import digits, served
from studies.mnist.served import TestResult
from studies.mnist.spending import Spending

PACKAGES = ("numpy", "tensorflow", "keras", "Pillow")
BACKBONE = "efficientnet-lite0"
RUN = "digits"
FOLDS = 10
"""One fold of so many is left out, and validates the training."""

MOST_RATIO = 1.2
"""The goal for the processor time beside that of plain Keras."""
LEAST_RIGHT = 0.992
MOST_ENGINE = 0.1
"""The goal for the server's own share of the processor time of the first training."""
EXPECTED = dict.fromkeys(("preprocess", "features", "partition", "index", "labelled", "train", "select"), 1)
"""The datums of one more labelled digit."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints the table; 1 if something fails."""
    parser = argparse.ArgumentParser(prog="python -m studies.mnist", description=__doc__)
    parser.add_argument("--pictures", type=program.positive, default=60_000, help="digits to train on, of 60,000")
    parser.add_argument("--test", type=program.positive, default=10_000, help="digits to test, of 10,000")
    parser.add_argument("--epochs", type=program.positive, default=5)
    parser.add_argument("--filters", type=program.positive, nargs="+", default=[24, 48, 96])
    parser.add_argument("--digits", type=Path, default=digits.place(), help="the directory of the four files")
    parser.add_argument("--keep", type=Path, help="a directory for the report of the training")
    given = program.parse(parser, (), arguments)
    given.sections = ["MNIST"]
    program.exit_on_sigterm()
    try:
        with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch, servers.localpachd() as server:
            study = _Study(given, Path(scratch), server)
            program.run(given, lambda _: study.result(), PACKAGES, beside="bound or peer")
    except (LookalikeError, RuntimeError, OSError) as error:
        print(f"studies.mnist: {error}", file=sys.stderr)
        return 1
    return 0


@dataclass(frozen=True)
class _Peer:
    """The processor seconds of another program from its start to its end, and the test pictures that it has right."""

    processor: float
    right: int
    of: int


@dataclass(frozen=True)
class _OneMore:
    """What one more digit has the server and its pipelines use, and the datums that it computes."""

    usage: Usage
    datums: Mapping[str, int]


class _Study:
    """The steps of the study on one server."""

    def __init__(self, given: argparse.Namespace, scratch: Path, server: Server) -> None:
        self._given, self._scratch, self._server = given, scratch, server
        self._address = f"grpc://127.0.0.1:{server.port}"
        self._connection: Connection = connect(ServerTarget(self._address))
        self._digits = digits.fetched(given.digits)
        self._parameters = scratch / f"{RUN}.json"
        chosen = {"filters": given.filters, "epochs": given.epochs, "cross_validation": False}
        chosen["augmentation"] = {"shift": 0.08}
        self._parameters.write_text(json.dumps({"folds": FOLDS, "convolutional": chosen}))

    def result(self) -> Result:
        """Runs everything; the measurements."""
        self._deploy()
        given = digits.write_part(self._digits, digits.TRAIN, self._given.pictures, self._scratch / "training")
        added = self._measured("add", str(given))
        report = self._given.keep or self._scratch / "report"
        trained = self._measured("train", str(self._parameters), "--yes", "--output", str(report))
        metrics = json.loads((report / "metrics.json").read_text())
        self._command("promote")
        with served.service(self._address) as place:
            tested = served.classify(place, self._digits, self._given.test)
        print(f"test: {tested.right} of {len(tested.own)}", file=sys.stderr, flush=True)
        keras = self._keras()
        print(keras, file=sys.stderr, flush=True)
        more = self._more()
        print(more, file=sys.stderr, flush=True)
        return Result(
            (
                Row("adding, processor", "ours", added.processor),
                Row("training, processor", "ours", trained.processor),
                Row("training, processor", "plain Keras", keras.processor),
                Row("one more digit, processor", "ours", more.usage.processor),
            ),
            _lines(self._given.pictures, added, trained, metrics, tested, keras, more),
        )

    def _deploy(self) -> None:
        every = [*pipeline_specs.load(specs_directory.current())]
        needed = optional_specs.required_specs(specs_directory.current(), experiments.GROUP)
        every += [spec for spec in needed if spec.name == experiments.LABELLED]
        found = drafts.find(spec.path for spec in every)
        changed = overlays.apply([overlays.load(str(Path(__file__).with_name("overlay.json")))], found)
        deployment.deploy(self._connection, pipeline_specs.ordered(draft.spec() for draft in changed))
        settle(self._connection, [backbone_push.push(self._connection, BACKBONE).commit])

    def _more(self) -> _OneMore:
        """One more labelled digit, which was a test picture."""
        folder = self._scratch / "more" / str(digits.labels(self._digits, digits.TEST)[0])
        folder.mkdir(parents=True)
        Image.fromarray(digits.pictures(self._digits, digits.TEST)[0]).save(folder / "one.png")
        with Spending(self._server.process.pid) as spending:
            commits = json.loads(self._command("add", str(folder.parent), "--json"))["commits"]
            usage = spending.usage()
        works = settle(self._connection, commits).works
        return _OneMore(usage, {each.pipeline: each.processed for each in works if each.processed})

    def _measured(self, *arguments: str) -> Usage:
        """What a command has the server and its pipelines use until all jobs have ended."""
        with Spending(self._server.process.pid) as spending:
            self._command(*arguments)
            used = spending.usage()
        print(f"{arguments[0]}: {used}", file=sys.stderr, flush=True)
        return used

    def _command(self, *arguments: str) -> str:
        """What a command prints."""
        print(f"lookalike classify {' '.join(arguments)}", file=sys.stderr, flush=True)
        done = subprocess.run(
            [sys.executable, "-m", "pipelines.cli", "classify", *arguments, "--address", self._address],
            stdout=subprocess.PIPE,
            text=True,
        )
        print(done.stdout, file=sys.stderr, flush=True)
        if done.returncode:
            raise RuntimeError(f"lookalike classify {arguments[0]} ended with status {done.returncode}")
        return done.stdout

    def _keras(self) -> _Peer:
        """Plain Keras in a process of its own."""
        print("plain Keras", file=sys.stderr, flush=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "studies.mnist.plain_keras", str(self._digits), str(self._given.pictures)]
        done = subprocess.run([*command, str(self._parameters)], stdout=subprocess.PIPE, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return _Peer(spent, **json.loads(done.stdout))


def _lines(
    pictures: int,
    added: Usage,
    trained: Usage,
    metrics: Mapping[str, Any],
    tested: TestResult,
    keras: _Peer,
    more: _OneMore,
) -> tuple[Line, ...]:
    share = tested.right / len(tested.own)
    ratio = trained.processor / keras.processor
    validated = metrics["cross_validation"]
    return (
        Line(
            "test digits right",
            f"{tested.right:,} of {len(tested.own):,}",
            f"plain Keras {keras.right:,} of {keras.of:,}",
            goal=f"{LEAST_RIGHT:.1%}",
            met="yes" if share >= LEAST_RIGHT else "no",
        ),
        Line("calibration error, test", f"{tested.calibration_error:.4f}"),
        Line("most frequent mistakes, test", tested.confusions(5)),
        Line("validated", f"{validated['right']:,} of {validated['of']:,}, calibration error {validated['ece']:.4f}"),
        line(
            f"first training of {pictures:,}, processor",
            trained.processor,
            keras.processor,
            "s",
            f"at most {MOST_RATIO}",
            ratio <= MOST_RATIO,
        ),
        _engine("first training", trained, MOST_ENGINE),
        line(f"adding {pictures:,}, processor", added.processor, None, "s"),
        _engine("adding", added),
        line("one more labelled digit, processor", more.usage.processor, None, "s"),
        _engine("one more labelled digit", more.usage),
        Line(
            "its datums",
            ", ".join(f"{name} {number}" for name, number in more.datums.items()),
            goal="1 each",
            met="yes" if more.datums == EXPECTED else "no",
        ),
    )


def _engine(what: str, used: Usage, most: float | None = None) -> Line:
    share = used.own / used.processor
    said = f"{share:.1%}; {used.peak:,.0f} MiB"
    goal, met = ("", "") if most is None else (f"at most {most:.0%}", "yes" if share <= most else "no")
    return Line(f"{what}, the engine's share; peak memory of all processes", said, goal=goal, met=met)


if __name__ == "__main__":
    sys.exit(main())
