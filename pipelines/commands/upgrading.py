"""The command that brings the deployed pipelines to the installed version, and back."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from pipelines.checks import suite
from pipelines.client import partsizes
from pipelines.client.connection import Connection
from pipelines.client.jobs import Jobs
from pipelines.cluster import growth, overview, preflight, status
from pipelines.cluster.growth import Growth
from pipelines.commands import interrupts, progress, reporting, upgradewords
from pipelines.commands.app import App
from pipelines.commands.connecting import connected, connected_to_write
from pipelines.commands.deployment import OverlaysOption, SpecsOption, shipped
from pipelines.commands.options import AddressOption, JsonOption
from pipelines.commands.terminal import console, say, say_all, say_json
from pipelines.errors import LookalikeError
from pipelines.library import recutting
from pipelines.library.recutting import Recut
from pipelines.specifications import drafts, overlays, variables
from pipelines.specifications.drafts import Draft
from pipelines.specifications.findings import Level
from pipelines.upgrading import costs, planning, returning, sending
from pipelines.upgrading.costs import Cost
from pipelines.upgrading.planning import Plan
from stages.wording import counted

app = App()


@app.command(
    examples=(
        "lookalike upgrade --dry-run",
        "lookalike upgrade",
        "lookalike upgrade --back",
        "lookalike upgrade --sizes",
    ),
)
def upgrade(
    directory: SpecsOption,
    back: Annotated[
        bool, typer.Option("--back", help="Restore the specifications from before the last upgrade.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Show the cost, and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    overlay: OverlaysOption = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Another value than the one that is kept; repeatable."),
    ] = None,
    as_written: Annotated[
        list[str] | None,
        typer.Option(metavar="PIPELINE", help="Keep none of this library's choices in this pipeline; repeatable."),
    ] = None,
    sizes: Annotated[
        bool,
        typer.Option("--sizes", help="Give a library that has outgrown its numbers of segments and parts larger ones."),
    ] = False,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Bring the deployed pipelines to the installed version, or back. Shows the cost and asks first.

    The library's own choices stay: parameters of --set, overlays, sizes of pictures. All pipelines change at once;
    older commits keep their answers. Call it again after an interruption: it goes on, or finds that all is done."""
    if back and (overlay or settings or as_written or sizes):
        raise typer.BadParameter(
            "the way back restores what ran before, and takes no --overlay, --set, --as-written or --sizes"
        )
    interrupts.explain("interrupted: run it again; it goes on, or finds that all is done")
    connection = connected(address) if dry_run else connected_to_write(address)
    there = Jobs(connection).pipelines()
    grown = _grown(connection, there) if sizes else None
    larger = {} if grown is None else growth.settings(grown)
    if back:
        plan = returning.plan(connection, there)
    else:
        asked = [*(f"{name}={value}" for name, value in larger.items()), *(settings or ())]
        plan = _forward(connection, there, directory, overlay or (), asked, as_written or ())
    found = _priced(costs.read(connection, plan.steps, there), grown, larger)
    pictures = overview.pictures(connection) if found else 0
    upgradewords.show(plan, found, pictures, back)
    commit = ""
    if plan.sent and not dry_run:
        _check(connection, plan.drafts)
        _ask(yes, back)
        commit = _send(connection, plan, there, larger)
        upgradewords.conclude(commit, back, bool(found))
        say_all(status.notes(connection))
    if as_json:
        say_json(upgradewords.data(plan, found, pictures, back, commit, larger))


def _grown(connection: Connection, there: Mapping[str, Any]) -> Growth:
    """The sizes of the library beside those proposed; says why it has outgrown them."""
    found = growth.read(connection, there.values(), overview.pictures(connection))
    upgradewords.growth(found, growth.settings(found))
    return found


def _priced(found: list[Cost], grown: Growth | None, larger: Mapping[str, str]) -> list[Cost]:
    """The cost with the datums that larger sizes leave."""
    if grown is None or not larger:
        return found
    digits, part = grown.segment_digits, grown.part
    then = int(larger.get(partsizes.DIGITS, digits)), int(larger.get(partsizes.PART, part))
    return costs.resized(found, (digits, then[0]), (part, then[1]))


def _send(connection: Connection, plan: Plan, there: Mapping[str, Any], larger: Mapping[str, str]) -> str:
    """Carries out the plan, with the blocks cut first. The jobs that this starts are stopped: those of the plan compute
    all of it."""
    cut = _cut(connection, int(larger[partsizes.PART])) if partsizes.PART in larger else None
    commit = sending.send(connection, plan, there)
    if cut is not None:
        say(f"cut {counted(cut.gone, 'block', 'blocks')} into {cut.made:,}: commit {cut.commit}")
        jobs = Jobs(connection)
        for job in jobs.of_set(cut.commit):
            if not job.ended and job.pipeline in {step.pipeline for step in plan.sent}:
                jobs.stop(job, "another job computes the same with the new sizes")
    return commit


def _cut(connection: Connection, part: int) -> Recut | None:
    """Cuts the blocks, with a bar: of a large library that takes minutes."""
    with progress.counting("cutting blocks, pictures") as report:
        return recutting.recut(connection, part, report)


def _forward(
    connection: Connection,
    there: dict[str, Any],
    directory: Path,
    names: Sequence[str],
    settings: Sequence[str],
    as_written: Sequence[str],
) -> Plan:
    try:
        installed = drafts.find([directory, *shipped(directory)])
        on_top = [overlays.load(name) for name in names]
        asked = variables.apply(settings, overlays.apply(on_top, installed))
    except LookalikeError as error:
        raise typer.BadParameter(str(error)) from error
    known = [draft.name for draft in installed]
    for name in as_written:
        if name not in known:
            raise typer.BadParameter(f"no specification is called {name}: there are {', '.join(known)}")
    for finding in (each for draft in installed for each in draft.findings):
        raise LookalikeError(f"{finding.place}: {finding.flaw.why}: `lookalike check` lists all problems")
    say_all(planning.behind(installed))
    return planning.plan(connection, there, installed, asked, as_written)


def _check(connection: Connection, found: Sequence[Draft]) -> None:
    """Raises LookalikeError if a specification or the cluster stands in the way, having said how."""
    if not found:
        return
    report = suite.check(list(found), (), None, drafts.neighbours(found)).of(Level.WARNING)
    report = report.with_more(preflight.look(connection, found, connection.namespace))
    if report.findings:
        reporting.show(report)
    if report.count(Level.ERROR):
        raise LookalikeError("nothing was upgraded: fix the errors first")


def _ask(yes: bool, back: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise LookalikeError("nothing was changed: without a terminal to ask on, --yes goes on, --dry-run only shows")
    console.file.flush()
    if not typer.confirm("go back?" if back else "upgrade?", default=False, err=True):
        say("nothing was changed")
        raise typer.Exit(1)
