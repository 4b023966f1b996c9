"""The commands for the pipelines themselves: check, specs, deploy and status."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from pipelines.checks import datum_counts, suite
from pipelines.checks.datum_counts import GlobPaths
from pipelines.client.deployment import deployment, listing_settings, part_sizes
from pipelines.client.deployment.image_sizes import IMAGE_SIZE
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.client.services import service_roles, service_settings
from pipelines.cluster import knative_manifests, pipeline_status, preflight, service_manifests
from pipelines.commands.kit import finding_display
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_connection, open_write_connection
from pipelines.commands.kit.options import AddressOption, JsonOption, output_option
from pipelines.commands.kit.terminal import display_path, say, say_all
from pipelines.errors import LookalikeError
from pipelines.specifications import (
    drafts,
    optional_specs,
    overlays,
    pipeline_specs,
    spec_writer,
    specs_directory,
    variables,
)
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.findings import FlawLevel
from pipelines.specifications.overlays import Overlay
from speclang.field_paths import dotted

app = App()

SpecsOption = Annotated[
    Path,
    typer.Option(
        "--specs",
        metavar="DIR",
        show_default=False,
        default_factory=specs_directory.current,
        help="The directory of specifications [default: specs/ here or above, else lookalike's own].",
    ),
]
OverlaysOption = Annotated[
    list[str] | None,
    typer.Option(
        "--overlay",
        metavar="NAME|FILE",
        help=f"The differences of a cluster: {', '.join(overlays.names())}, or a file (repeatable, in order).",
    ),
]

SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="A variable in every pipeline that has it, such as K=10 (repeatable)."
    ),
]


@app.command(
    examples=(
        "lookalike deploy",
        "lookalike deploy --set K=10",
        "lookalike deploy --reprocess features",
        "lookalike deploy --overlay gke --overlay pull-secret",
    ),
)
def deploy(
    directory: SpecsOption,
    overlay: OverlaysOption = None,
    settings: SetOption = None,
    reprocess: Annotated[
        list[str] | None,
        typer.Option(metavar="PIPELINE", help="Compute everything of this pipeline again (repeatable)."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Deploy even if the check reports errors.")] = False,
    address: AddressOption = "",
) -> None:
    """Create or update repos and pipelines from the specifications. Safe to repeat.

    The opt-in pipelines, which `lookalike duplicates`, `lookalike evaluate` and `lookalike serve --deploy` create, are
    updated where they exist."""
    found, _, on_top = _read([directory, *shipped(directory)], overlay, settings)
    check_names(reprocess or (), found)
    connection = open_write_connection(address)
    everything, found = found, _asked_for(found, connection, settings or ())
    _check_reached(on_top, everything, found)
    report = suite.check(found, on_top).of(FlawLevel.WARNING)
    report = report.with_more(preflight.find_obstacles(connection, found))
    if report.findings:
        finding_display.show(report)
    if report.count(FlawLevel.ERROR) and not force:
        raise LookalikeError("nothing was deployed: fix the errors, or deploy in spite of them with --force")
    named = {each.partition("=")[0] for each in settings or ()}
    deployment.deploy(
        connection,
        pipeline_specs.ordered(draft.spec() for draft in found),
        lambda each: say(str(each)),
        reprocess or (),
        keep_size=IMAGE_SIZE not in named,
        keep_parts=named.isdisjoint(part_sizes.NAMES),
    )
    if settings:
        say(
            f"{', '.join(settings)}: until the next `lookalike deploy` without; to keep it, "
            f"change {display_path(directory)}/"
        )
    say_all(pipeline_status.notes(connection))


@app.command(
    "specs",
    examples=("lookalike specs --output out --overlay cpu",),
)
def write_specs(
    output: Annotated[Path, output_option("The directory to write to.")],
    directory: SpecsOption,
    overlay: OverlaysOption = None,
    settings: SetOption = None,
) -> None:
    """Write the specifications with overlays as plain files, for `pachctl create pipeline -f`, and the services as
    Deployments, the one that classifies also as a Service of Knative, for `kubectl apply -f`."""
    found, _, on_top = _read([directory], overlay, settings)
    wrong = [finding for draft in found for finding in draft.findings]
    wrong += [finding for each in on_top for finding in each.findings]
    if wrong:
        first = f"{wrong[0].place}: {dotted(wrong[0].flaw.field)}: {wrong[0].flaw.why}"
        raise LookalikeError(f"{first}; nothing was written: `lookalike check` lists all problems")
    further = {**service_manifests.manifests(found), **knative_manifests.manifests(found)}
    say_all(f"wrote {display_path(path)}" for path in spec_writer.write(output, found, on_top, further))


@app.command(
    examples=(
        "lookalike check",
        "lookalike check specs/ --overlay cpu",
        "lookalike check specs/preprocess.json --against photos/",
    ),
)
def check(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            exists=True,
            metavar="SPEC|DIR",
            help="Specifications, or directories of them [default: specs/ here or above, else lookalike's own].",
        ),
    ] = None,
    overlay: OverlaysOption = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[REPO=]DIR|REPO",
            help="Count datums with the files of a directory, or of a repo on the server; REPO=DIR names the repo "
            "for the files, a directory alone stands for every repo that no pipeline writes (repeatable).",
        ),
    ] = None,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Check specifications without a server. The exit code is 1 if there are errors."""
    found, beside, on_top = _read(paths or [specs_directory.current()], overlay)
    report = suite.check(found, on_top, _repos(against or [], [*found, *beside], address), beside)
    if as_json:
        typer.echo(report.as_json())
    else:
        finding_display.show(report)
    if report.count(FlawLevel.ERROR):
        raise typer.Exit(1)


def _read(
    paths: list[Path], names: list[str] | None, settings: list[str] | None = None
) -> tuple[list[SpecDraft], list[SpecDraft], list[Overlay]]:
    """The specifications with the overlays and settings applied, the others in their directories, and the overlays."""
    try:
        on_top = [overlays.load(name) for name in names or ()]
        found = drafts.find(paths)
        changed = overlays.apply(on_top, [*found, *drafts.neighbours(found)])
        changed = variables.apply(settings or (), changed)
    except LookalikeError as error:
        raise typer.BadParameter(str(error)) from error
    return changed[: len(found)], changed[len(found) :], on_top


def shipped(directory: Path) -> list[Path]:
    """The opt-in specifications that lookalike ships, for the groups that a directory lacks."""
    return [path for path in optional_specs.optional_files(directory) if path.parent.parent != directory]


def _asked_for(found: Sequence[SpecDraft], connection: Connection, settings: Sequence[str]) -> list[SpecDraft]:
    """The specifications without the opt-in ones that are not deployed, and that none of these reads. Raises
    BadParameter for a variable that only these have."""
    there = ProjectJobs(connection).pipelines()
    wanted = drafts.wanted(found, there)
    kept = overlays.apply(overlays.implied(wanted), [draft for draft in found if draft.name in wanted])
    kept = [_with_running_values(draft, there[draft.name]) if draft.name in there else draft for draft in kept]
    for setting in settings:
        name = setting.partition("=")[0]
        others = [draft for draft in found if name in draft.get("transform", "env", default={})]
        if wanted.isdisjoint(draft.name for draft in others):
            first = f"`{optional_specs.command(optional_specs.group(others[0].path))}`"
            raise typer.BadParameter(f"{name} is a variable of {others[0].name}, which {first} deploys: do that first")
    return kept


def _with_running_values(draft: SpecDraft, info: Any) -> SpecDraft:
    """The specification with what a command has given the pipeline that runs, where it has."""
    if draft.name in service_roles.ROLES:
        return service_settings.with_running_values(draft, info)
    if draft.name in (listing_settings.LISTING, listing_settings.FETCH):
        return listing_settings.with_running_values(draft, info)
    return draft


def _check_reached(on_top: Sequence[Overlay], everything: Sequence[SpecDraft], kept: Sequence[SpecDraft]) -> None:
    """Raises BadParameter for an overlay of nothing but opt-in pipelines that are not deployed."""
    names = {draft.name for draft in kept}
    for overlay in on_top:
        if overlay.reaches_only_named and overlay.pipelines and names.isdisjoint(overlay.pipelines):
            first = next(optional_specs.group(draft.path) for draft in everything if draft.name in overlay.pipelines)
            changed, command = " and ".join(overlay.pipelines), optional_specs.command(first)
            raise typer.BadParameter(f"{overlay.name} changes {changed}, which `{command}` deploys: do that first")


def check_names(names: Sequence[str], found: Sequence[SpecDraft]) -> None:
    """Raises BadParameter for the name of a pipeline that is not among the specifications."""
    known = [draft.name for draft in found]
    for name in names:
        if name not in known:
            raise typer.BadParameter(f"no specification is called {name}: there are {', '.join(known)}")


def _repos(against: list[str], found: list[SpecDraft], address: str) -> dict[str, GlobPaths]:
    """The files of repos, by the repo's name, from `--against`."""
    read = pipeline_specs.sources(draft.spec() for draft in found if not draft.findings)
    repos: dict[str, GlobPaths] = {}
    for each in against:
        name, given, directory = each.rpartition("=")
        if Path(directory).is_dir():
            repos |= dict.fromkeys([name] if given else read, datum_counts.listed(Path(directory)))
        elif given:
            raise typer.BadParameter(f"{directory} is not a directory")
        else:
            repos[each] = _stored(each, address)
    return repos


def _stored(name: str, address: str) -> GlobPaths:
    repository = Repository(open_connection(address), name)
    if not repository.exists("/"):
        raise LookalikeError(f"{name} is neither a directory nor a repo with files on the server")
    return lambda glob: (each.path.rstrip("/") for each in repository.glob(glob.pattern))
