"""The demo of classifiers, from an empty server to classified pictures: labels, a grid of parameters, a promotion."""

import json
from collections.abc import Mapping
from pathlib import Path

from rich.markup import escape

from pipelines.analysis.classifiers import experiments, parameter_files, promotion, training_report
from pipelines.analysis.classifiers.promotion import PictureLabels
from pipelines.analysis.measurement import evaluation, optional_deployment
from pipelines.client.deployment import first_files
from pipelines.client.server import local_server
from pipelines.client.server.connection import Connection, ServerTarget
from pipelines.commands.classify import classify_tables
from pipelines.commands.kit import library_setup, progress
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_server_connection
from pipelines.commands.kit.job_completion import finish
from pipelines.commands.kit.options import PortOption, RootOption
from pipelines.commands.kit.progress import counting
from pipelines.commands.kit.terminal import console, display_path, files, plain_table, say, say_all
from pipelines.commands.server import demo
from pipelines.library import ingest, picture_sources, queries
from pipelines.library.datasets import samples
from pipelines.specifications import optional_specs, specs_directory
from stages.classify.report import training_words
from stages.classify.training.training_parameters import SUFFIX
from stages.datum.text_format import counted, visible

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
def run_demo(root: RootOption = None, port: PortOption = None) -> None:
    """From nothing to a classifier on this machine: server, labelled sample pictures, four trainings, a promotion.

    Then it classifies the sample queries. `lookalike demo --remove` removes the sample pictures again.
    """
    where = root or local_server.default_root()
    server, fresh = local_server.up(where, port)
    say(f"localpachd {'is running' if fresh else 'was running already'} at {server.address} (process {server.pid})")
    connection = open_server_connection(ServerTarget(server.address, local=True))
    _train(connection, where / "samples")
    found = training_report.export(connection, REPORT)
    classify_tables.show(experiments.read(connection))
    classify_tables.show_choice(found)
    trial = promotion.measure(connection, promotion.candidate(connection))
    promotion.promote(connection, trial.candidate)
    say_all(training_words.promotion_lines(trial.measured))
    say(f"promoted {promotion.named(trial.candidate)}")
    _show(promotion.labels(connection, samples.QUERIES))
    say(f"report: {display_path(REPORT / training_report.PAGE)}")
    say("next: lookalike classify serve, to classify pictures of your own in the browser")


def _train(connection: Connection, directory: Path) -> None:
    """Deploys all that is needed, puts the samples, their labels and the parameters, and waits for the jobs."""
    wanted = demo.demo_pictures(directory, None, None)
    found = picture_sources.find([wanted.images])
    library_setup.deploy(connection)
    commits = [*library_setup.push_default_backbone(connection)]
    grid = {f"{name}{SUFFIX}": json.dumps(each).encode() for name, each in GRID.items()}
    commits.append(parameter_files.change(connection, grid))
    optional_deployment.deploy(connection, experiments.GROUP, lambda each: say(str(each)))
    labels = evaluation.edits(connection, {demo.LABELS: wanted.labels}, to_train=True)
    with counting("putting pictures", len(found.sources)) as report:
        added = ingest.add(connection, found.sources, report, beside={first_files.LABELS: labels})
    asked = queries.put(connection, queries.find([wanted.queries or directory]))
    say(f"put {files(added.files)} into images and {files(asked.files)} into queries")
    names = [spec.name for spec in optional_specs.required_specs(specs_directory.current(), experiments.GROUP)]
    only = [*names, promotion.VECTORS]
    jobs = progress.wait(connection, [*filter(None, commits), added.commit, asked.commit], only)
    finish(connection, jobs)


def _show(found: list[PictureLabels]) -> None:
    """Prints some of the classified queries, and the number that is right."""
    right = [each for each in found if each.labels[0][0] == samples.label_of(each.source)]
    table = plain_table("query", "taken for", numbers=("probability",))
    for each in found[:: max(1, len(found) // _SHOWN)][:_SHOWN]:
        label, probability = each.labels[0]
        table.add_row(escape(visible(each.source)), escape(visible(label)), training_words.percent(probability))
    console.print(table)
    say(f"{len(right):,} of {counted(len(found), 'sample query', 'sample queries')} right")
