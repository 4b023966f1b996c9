"""The demo of classifiers, from an empty server to classified pictures: labels, a grid of parameters, a promotion."""

import json
from collections.abc import Mapping
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from pipelines.client.deploying import deployment
from pipelines.client.server import local
from pipelines.client.server.connection import Connection, Target
from pipelines.commands.classify import classifytables
from pipelines.commands.kit import progress
from pipelines.commands.kit.app import App
from pipelines.commands.kit.connecting import connected_to
from pipelines.commands.kit.options import PortOption, RootOption
from pipelines.commands.kit.progress import counting
from pipelines.commands.kit.terminal import console, files, near, say, say_all
from pipelines.commands.kit.waiting import finish
from pipelines.commands.server import demo
from pipelines.explaining.classifying import asking, experiments, parameterfiles, promoting, reports
from pipelines.explaining.classifying.asking import Labelled
from pipelines.explaining.measuring import deploying, evaluating
from pipelines.library import ingest, pictures, queries
from pipelines.library.datasets import samples
from pipelines.specifications import optional, own, reading
from stages.classify.report import words
from stages.classify.training.parameters import SUFFIX
from stages.datum.wording import counted, visible

app = App()

GRID: Mapping[str, Mapping[str, object]] = {
    "linear": {},
    "smoothed": {"label_smoothing": 0.1},
    "mlp": {"head": "mlp", "hidden": [128], "epochs": 60},
    "dropout": {"head": "mlp", "hidden": [128], "dropout": 0.5, "epochs": 60},
}
"""The parameters of the demo's runs by name."""

REPORT = Path("results/classify")
_SHOWN = 8


@app.command(
    "demo",
    examples=("lookalike classify demo", "lookalike classify demo --root elsewhere/.lookalike --port 0"),
)
def run_demo(root: RootOption = None, port: PortOption = 30650) -> None:
    """From nothing to a classifier on this machine: server, labelled sample pictures, four trainings, a promotion.

    Then it classifies the sample queries. `lookalike demo --remove` removes the sample pictures again.
    """
    where = root or local.default_root()
    server, fresh = local.up(where, port)
    say(f"localpachd {'is running' if fresh else 'was running already'} at {server.address} (process {server.pid})")
    connection = connected_to(Target(server.address, local=True))
    _train(connection, where / "samples")
    found = reports.export(connection, REPORT)
    classifytables.show(experiments.read(connection))
    classifytables.show_choice(found)
    trial = promoting.measure(connection, promoting.candidate(connection))
    promoting.promote(connection, trial.candidate)
    say_all(words.promotion_lines(trial.measured))
    say(f"promoted {promoting.named(trial.candidate)}")
    _show(asking.labels(connection, samples.QUERIES))
    say(f"report: {near(REPORT / reports.PAGE)}")
    say("next: lookalike classify serve, to classify pictures of your own in the browser")


def _train(connection: Connection, directory: Path) -> None:
    """Deploys all that is needed, puts the samples, their labels and the parameters, and waits for the jobs."""
    wanted = demo.wanted(directory, None, None)
    found = pictures.find([wanted.images])
    for each in deployment.deploy(connection, reading.load(own.current())):
        say(f"{each.kind} {each.name}: {each.action}")
    commits = demo.backbone(connection)
    commits.append(evaluating.put(connection, {demo.LABELS: wanted.labels}))
    grid = {f"{name}{SUFFIX}": json.dumps(each).encode() for name, each in GRID.items()}
    commits.append(parameterfiles.change(connection, grid))
    deploying.deploy(connection, experiments.GROUP, lambda each: say(f"{each.kind} {each.name}: {each.action}"))
    with counting("putting pictures", len(found.sources)) as report:
        added = ingest.add(connection, found.sources, report)
    asked = queries.put(connection, [wanted.queries or directory])
    say(f"put {files(added.files)} into images and {files(asked.files)} into queries")
    names = [spec.name for spec in optional.needed(own.current(), experiments.GROUP)]
    only = [*names, asking.VECTORS]
    jobs = progress.wait(connection, [*filter(None, commits), added.commit, asked.commit], only)
    finish(connection, jobs)


def _show(found: list[Labelled]) -> None:
    """Prints some of the classified queries, and the number that is right."""
    right = [each for each in found if each.labels[0][0] == samples.label_of(each.source)]
    table = Table("query", "taken for", box=None, header_style="bold", pad_edge=False)
    table.add_column("probability", justify="right")
    for each in found[:: max(1, len(found) // _SHOWN)][:_SHOWN]:
        label, probability = each.labels[0]
        table.add_row(escape(visible(each.source)), escape(visible(label)), words.percent(probability))
    console.print(table)
    say(f"{len(right):,} of {counted(len(found), 'sample query', 'sample queries')} right")
