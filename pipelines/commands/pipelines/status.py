"""The command that shows the state of the library and of its pipelines."""

import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich import filesize

from pipelines.client.server.connection import Connection
from pipelines.cluster import graph_svg, graph_text, library_overview, pipeline_status
from pipelines.cluster.graph_reader import GraphReader
from pipelines.cluster.library_overview import DiskUsage, LibraryOverview
from pipelines.cluster.pipeline_graph import PipelineGraph
from pipelines.cluster.pipeline_status import REJECTING, PipelineStatus, ProjectStatus
from pipelines.commands.kit import display
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_connection
from pipelines.commands.kit.options import AddressOption, JsonOption, output_option
from pipelines.commands.kit.terminal import display_path, say, say_json
from pipelines.commands.pipelines import terminal_graph
from pipelines.specifications import optional_specs, pipeline_specs, specs_directory
from stages.datum.text_format import counted

app = App()

StatusFormat = Literal["terminal", "svg", "mermaid"]


@app.command(
    "status",
    examples=(
        "lookalike status",
        "lookalike status --json",
        "lookalike status --graph",
        "lookalike status --graph svg -o pipelines.svg",
    ),
    alone={"--graph": "terminal"},
)
def show_status(
    graph: Annotated[
        StatusFormat | None,
        typer.Option(
            metavar="[FORMAT]",
            help="Show the repos and pipelines as a graph instead: on the terminal, or as svg or mermaid.",
        ),
    ] = None,
    output: Annotated[Path | None, output_option("With --graph: the file to write [default: stdout].", "FILE")] = None,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Show the library at a glance: pictures, queries, model, disk, GPUs and jobs, then every pipeline with its running
    and newest jobs, and the reasons of failures and rejections."""
    if output is not None and graph is None:
        raise typer.BadParameter("it is for --graph", param_hint="'--output'")
    connection = open_connection(address)
    if graph is not None:
        _show_graph(connection, graph, output, as_json)
        return
    here = specs_directory.current()
    usual = [spec.name for spec in pipeline_specs.load(here)]
    most = None if as_json else display.MOST_COUNTED
    found = pipeline_status.read(connection, usual, optional_specs.names(here), most)
    facts = library_overview.read(connection)  # later, so that the index of a job that has ended is counted
    if as_json:
        server = {"address": connection.address, "project": connection.project}
        say_json({"server": server, "library": facts, "jobs": _work(found.pipelines), **asdict(found)})
        return
    say(f"server    {connection.address}, project {connection.project}")
    _show_overview(facts, found)
    for reason in facts.growth.outgrown:
        say(f"outgrown  {reason}")
    if facts.growth.outgrown:
        say(f"{'':<9} with --dry-run, `lookalike upgrade` shows the cost and changes nothing")
    say("")
    display.show_status(found)


def _show_graph(connection: Connection, form: StatusFormat, output: Path | None, as_json: bool) -> None:
    found = GraphReader(connection).look()
    if as_json:
        say_json(found)
    elif form == "terminal" and output is None:
        terminal_graph.show(found)
    else:
        text = _document(found, form, f"The pipelines of {connection.address}, project {connection.project}")
        if output is None:
            sys.stdout.write(text)
        else:
            output.write_text(text, encoding="utf-8")
            say(f"wrote {output}")


def _document(found: PipelineGraph, form: StatusFormat, title: str) -> str:
    if form == "svg":
        return graph_svg.render(found, title)
    return (
        graph_text.mermaid(found)
        if form == "mermaid"
        else f"{terminal_graph.render_text(found, terminal_graph.USUAL)}\n"
    )


def _show_overview(facts: LibraryOverview, found: ProjectStatus) -> None:
    """Prints the facts about the library, a line for each."""
    bad = [each.repo for each in found.rejected if not each.is_skipped]
    rejected = {repo: bad.count(repo) for repo in REJECTING.values()}
    lines = {
        "pictures": f"{facts.pictures:,} in the index{_besides(rejected['images'])}",
        "queries": counted(facts.queries, "entry", "entries") + _besides(rejected["queries"]),
        "model": _model(facts),
        "disk": _disk(facts.disk),
        "GPUs": _gpus(facts),
        "jobs": _jobs(found.pipelines),
        "open": ", ".join(facts.addresses) or None,
    }
    for name, text in lines.items():
        if text is not None:
            say(f"{name:<9} {text}")


def _besides(rejected: int) -> str:
    return f", and {display.rejected_files(rejected)}, see below" if rejected else ""


def _model(facts: LibraryOverview) -> str:
    model = facts.model
    if model is None:
        return "none: `lookalike model push efficientnet-lite0`"
    fit = f", fit: {facts.fit}" if facts.fit else ""
    precision = "" if model.precision == "float32" else f", {model.precision}"
    later = "; the index still has another model's vectors" if model.replacing else ""
    sizes = "" if facts.image_size in (None, model.image_size) else f", but pictures are made {facts.image_size} px"
    words = ", finds words" if model.words else ""
    return f"{model.name}, {model.image_size} px{sizes}{fit}{precision}, K={facts.neighbours}{words}{later}"


def _disk(disk: DiskUsage) -> str:
    used = filesize.decimal(disk.used)
    if disk.free is None:
        return f"{used} in all repos"
    return f"{used} in {display_path(Path(disk.directory))}, {filesize.decimal(disk.free)} free"


def _gpus(facts: LibraryOverview) -> str:
    if facts.gpus is None:
        return "see `lookalike gpus`"
    return f"{facts.gpus.in_use} of {facts.gpus.total} in use" if facts.gpus.total else "none: the CPU is used"


def _jobs(pipelines: Iterable[PipelineStatus]) -> str:
    counts = _work(pipelines)
    return "none" if not any(counts.values()) else f"{counts['running']} running, {counts['waiting']} waiting"


def _work(pipelines: Iterable[PipelineStatus]) -> dict[str, int]:
    """The number of jobs that run, and of those that wait."""
    jobs = [job for each in pipelines for job in (*each.ahead, each.job) if job is not None and not job.ended]
    running = sum(job.state == "running" for job in jobs)
    return {"running": running, "waiting": len(jobs) - running}
