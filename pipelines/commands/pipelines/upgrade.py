"""The command that brings the deployed pipelines to the installed version, and back."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from pipelines.checks import suite
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.server.connection import Connection
from pipelines.cluster import library_overview, pipeline_status, preflight
from pipelines.commands.kit import finding_display, interrupts
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_connection, open_write_connection
from pipelines.commands.kit.options import AddressOption, JsonOption, YesOption
from pipelines.commands.kit.terminal import ask, say_all, say_json
from pipelines.commands.pipelines import upgrade_text
from pipelines.commands.pipelines.deploy import OverlaysOption, SpecsOption, check_names, shipped
from pipelines.errors import LookalikeError
from pipelines.specifications import drafts, overlays, variables
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.findings import FlawLevel
from pipelines.upgrades import upgrade_costs, upgrade_plan, upgrade_transaction
from pipelines.upgrades.upgrade_plan import UpgradePlan

app = App()


@app.command(
    examples=(
        "lookalike upgrade --dry-run",
        "lookalike upgrade",
        "lookalike upgrade --back",
        "lookalike upgrade --sizes",
    )
)
def upgrade(
    directory: SpecsOption,
    back: Annotated[
        bool, typer.Option("--back", help="Restore the specifications from before the last upgrade.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Show the cost, and change nothing.")] = False,
    yes: YesOption = False,
    overlay: OverlaysOption = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Another value than the one that is kept (repeatable)."),
    ] = None,
    as_written: Annotated[
        list[str] | None,
        typer.Option(metavar="PIPELINE", help="Keep none of this library's choices in this pipeline (repeatable)."),
    ] = None,
    sizes: Annotated[
        bool, typer.Option("--sizes", help="Give a library that has outgrown its segments more of them.")
    ] = False,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Bring the deployed pipelines to the installed version, or back. Shows the cost and asks first.

    The library's own choices stay: parameters of --set, overlays, sizes of pictures. All pipelines change at once, and
    older commits keep their answers. Call it again after an interruption: it goes on, or finds that all is done."""
    if back and (overlay or settings or as_written or sizes):
        raise typer.BadParameter(
            "--back restores the previous pipelines, and takes no --overlay, --set, --as-written or --sizes"
        )
    interrupts.explain("interrupted: run it again to continue")
    connection = open_connection(address) if dry_run else open_write_connection(address)
    there = ProjectJobs(connection).pipelines()
    larger = _larger(connection, there) if sizes else {}
    if back:
        plan = upgrade_plan.plan_back(connection, there)
    else:
        asked = [*(f"{name}={value}" for name, value in larger.items()), *(settings or ())]
        plan = _forward(connection, there, directory, overlay or (), asked, as_written or ())
    found = upgrade_costs.read(connection, plan.steps, there)
    pictures = library_overview.pictures(connection) if found else 0
    upgrade_text.show(plan, found, pictures, back)
    say_all(f"new repo: {repo}, which may stay empty" for repo in plan.new_repos(there))
    commit = ""
    if plan.sent and not dry_run:
        _check(connection, plan.drafts)
        if not yes:
            ask("go back?" if back else "upgrade?", "--yes goes on, --dry-run only shows", "nothing was changed")
        commit = upgrade_transaction.send(connection, plan, there)
        upgrade_text.conclude(commit, back, bool(found))
        say_all(pipeline_status.notes(connection))
    if as_json:
        say_json(upgrade_text.data(plan, found, pictures, back, commit, larger))


def _larger(connection: Connection, there: Mapping[str, Any]) -> dict[str, str]:
    """The variables that the library has outgrown, as they are proposed; says why."""
    found = library_overview.growth(there.values(), library_overview.pictures(connection))
    larger = library_overview.larger_sizes(found)
    upgrade_text.growth(found, larger)
    return larger


def _forward(
    connection: Connection,
    there: dict[str, Any],
    directory: Path,
    names: Sequence[str],
    settings: Sequence[str],
    as_written: Sequence[str],
) -> UpgradePlan:
    try:
        installed = drafts.find([directory, *shipped(directory)])
        on_top = [overlays.load(name) for name in names]
        asked = variables.apply(settings, overlays.apply(on_top, installed))
    except LookalikeError as error:
        raise typer.BadParameter(str(error)) from error
    check_names(as_written, installed)
    for finding in (each for draft in installed for each in draft.findings):
        raise LookalikeError(f"{finding.place}: {finding.flaw.why}: `lookalike check` lists all problems")
    say_all(upgrade_plan.outdated_specs(installed))
    return upgrade_plan.plan(connection, there, installed, asked, as_written)


def _check(connection: Connection, found: Sequence[SpecDraft]) -> None:
    """Raises LookalikeError if a specification or the cluster stands in the way, having said how."""
    if not found:
        return
    report = suite.check(list(found), (), None, drafts.neighbours(found)).of(FlawLevel.WARNING)
    report = report.with_more(preflight.find_obstacles(connection, found))
    if report.findings:
        finding_display.show(report)
    if report.count(FlawLevel.ERROR):
        raise LookalikeError("nothing was upgraded: fix the errors first")
