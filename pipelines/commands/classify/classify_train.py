"""The commands that train classifiers and delete the pipelines for that again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from pipelines.analysis.classifiers import experiments, parameter_files, training_report
from pipelines.analysis.classifiers.experiments import GROUP, LABELLED
from pipelines.analysis.measurement import optional_deployment
from pipelines.client.deployment import first_files, train_branch
from pipelines.client.lineage import Lineage
from pipelines.client.server.connection import Connection
from pipelines.commands.classify import classify_tables
from pipelines.commands.kit import job_completion, optional_pipelines, progress
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_write_connection
from pipelines.commands.kit.options import AddressOption, OnceOption, WaitOption, YesOption, output_option, path
from pipelines.commands.kit.terminal import display_path, files, say
from pipelines.errors import LookalikeError
from stages.classify.report import training_words
from stages.datum.text_format import counted

app = App()


@app.command(
    examples=(
        "lookalike classify train",
        "lookalike classify train grid/*.json",
        "lookalike classify train --remove linear",
        "lookalike classify train --if-new 100",
    ),
)
def train(
    parameters: Annotated[
        list[Path] | None,
        typer.Argument(parser=path, metavar="FILE", help="Files of parameters (.json), each of which is one run."),
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Remove the run of this name (repeatable).")
    ] = None,
    now: Annotated[
        bool, typer.Option("--now", help="Where trainings are held back: train on the newest labelled pictures.")
    ] = False,
    if_new: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="NUMBER", help="The same if so many labelled pictures were in no training, or nothing."
        ),
    ] = None,
    output: Annotated[Path, output_option("The directory for the report.")] = Path("results/classify"),
    once: OnceOption = False,
    yes: YesOption = False,
    wait: WaitOption = True,
    address: AddressOption = "",
) -> None:
    """Train a classifier for each file of parameters, choose the best, and list all runs.

    The first call creates the pipelines for that, which then follow every change of labels, pictures and parameters: it
    says what each later `lookalike add` will cost, and asks. A run that has been computed is not computed again. The
    report is copied to a directory, with --once also the classifier.
    """
    checked = parameter_files.check(parameters or ())
    connection = open_write_connection(address)
    optional_deployment.check(connection, GROUP)
    held_back = train_branch.repos(connection)
    if not held_back:
        _say_follows(now, if_new)
    if checked or remove:
        commit = parameter_files.change(connection, checked, remove or ())
        said = [f"put {files(len(checked))} into"] if checked else []
        said += [f"removed {files(len(remove or ()))} from"] if remove else []
        say(f"{' and '.join(said)} {first_files.PARAMETERS}{f': commit {commit}' if commit else ': unchanged'}")
    with optional_pipelines.deployed(connection, GROUP, wait, once, yes) as done:
        if held_back:
            done = _train_held(connection, held_back, now, if_new, wait) and done
        if not done:
            return
        found = training_report.export(connection, output, with_classifier=once)
        classify_tables.show(experiments.read(connection))
        classify_tables.show_choice(found)
    say(f"report: {display_path(output / training_report.PAGE)}")
    if not found["run"]:
        raise LookalikeError(f"no training has succeeded: {training_words.summary(found)}")


@app.command(
    examples=("lookalike classify off", "lookalike classify off --force"),
)
def off(
    force: Annotated[bool, typer.Option("--force", help="Delete a promoted classifier, too.")] = False,
    address: AddressOption = "",
) -> None:
    """Delete the pipelines that train, with all runs and classifiers. Labels and parameters stay.

    A classifier in production is kept, and so are all pipelines, unless --force is given.
    """
    connection = open_write_connection(address)
    promoted = connection.retry(experiments.production, connection, Lineage(connection))
    if promoted is not None and not force:
        raise LookalikeError(
            f"{promoted.chosen.run}, commit {promoted.commit} of select, is in production and would be lost with its "
            "pipeline: copy it (`pachctl get file -r select@production:/ -o DIR`), and give --force to delete it all"
        )
    optional_pipelines.off(connection, GROUP)
    say(f"the repos {first_files.LABELS} and {first_files.PARAMETERS} stay, and so do the pictures")


def _say_follows(now: bool, if_new: int | None) -> None:
    """Where trainings follow every change, there is nothing to ask for."""
    overlay = "with `lookalike deploy --overlay train-on-request` they wait until they are asked for"
    if if_new is not None:
        raise LookalikeError(f"--if-new is for trainings that are held back; here they follow every change: {overlay}")
    if now:
        say(f"trainings follow every change here, so --now changes nothing: {overlay}")


def _train_held(connection: Connection, repos: Sequence[str], now: bool, if_new: int | None, wait: bool) -> bool:
    """Trains on the newest labelled pictures if that is asked for, or if nothing was trained yet; returns whether the
    output is that of the newest training."""
    trained = train_branch.head(connection, LABELLED)
    commits = train_branch.newest(connection, repos)
    if LABELLED not in commits:
        raise LookalikeError(f"{LABELLED} has no output to train on: see `lookalike status`")
    if commits[LABELLED] == trained:
        say("the newest labelled pictures have been trained on")
        return True
    new = experiments.untrained(connection, trained, commits[LABELLED])
    words = f"{counted(new, 'labelled picture', 'labelled pictures')} that no training has had"
    wanted = now or not trained or (if_new is not None and new >= if_new)
    if not wanted:
        missing = f": {if_new - new:,} fewer than {if_new:,}, so nothing is trained" if if_new is not None else ""
        say(f"{words}{missing or '; to train on them: lookalike classify train --now'}")
        return True
    commit = train_branch.move(connection, commits)
    say(f"{words}: training on {LABELLED} at {commits[LABELLED][:12]}, commit {commit}")
    if not wait:
        say("its jobs are running: see `lookalike status`")
        return False
    job_completion.finish(connection, progress.wait(connection, [commit]))
    return True
