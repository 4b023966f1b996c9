"""The command that keeps the graph of the pipelines on the terminal while jobs run."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.live import Live

from pipelines.cluster.graph_reader import GraphReader
from pipelines.cluster.pipeline_graph import GraphNode, PipelineGraph
from pipelines.commands.kit import interrupts
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_connection
from pipelines.commands.kit.estimates import result
from pipelines.commands.kit.options import AddressOption
from pipelines.commands.kit.terminal import console, say
from pipelines.commands.pipelines import terminal_graph
from pipelines.errors import LookalikeError
from stages.datum.text_format import counted

app = App()

_SHARE = 4.0
"""A look is not repeated before so many times its own duration: a slow server is asked less often."""

_ENDLESS = ("service", "spout")


@app.command(examples=("lookalike watch", "lookalike watch --until-idle   # ends when all jobs have ended"))
def watch(
    interval: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="The time between two looks.")] = 1.0,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="End when all jobs have ended, with an error if one did not succeed.")
    ] = False,
    address: AddressOption = "",
) -> None:
    """Show the repos and pipelines as a graph, live while jobs run, until Ctrl-C. Where there is no terminal, print a
    line for each change."""
    interrupts.explain("no longer watching, but the jobs continue")
    seeing = GraphReader(open_connection(address))
    with _showing() as show:
        while True:
            interrupts.check()
            began = time.monotonic()
            graph = seeing.look()
            show(graph)
            if until_idle and not any(map(_is_busy, graph.nodes)):
                break
            time.sleep(max(interval, _SHARE * (time.monotonic() - began)))
    failed = [node.name for node in graph.nodes if node.job is not None and node.job.ended and node.state != "success"]
    if failed:
        raise LookalikeError(f"{', '.join(failed)} did not succeed: see `lookalike status` for the reasons")


@contextmanager
def _showing() -> Iterator[Callable[[PipelineGraph], None]]:
    """Gives the function that shows a graph in place of the one before."""
    if not console.is_terminal:
        yield _Lines().show
        return
    with Live(console=console, auto_refresh=False) as live:
        yield lambda graph: live.update(terminal_graph.on_terminal(graph, console.height), refresh=True)


class _Lines:
    """A line for each pipeline whose job or state has changed."""

    def __init__(self) -> None:
        self._before: dict[str, str] | None = None

    def show(self, graph: PipelineGraph) -> None:
        """Prints what is new; all pipelines at first."""
        now = {node.name: _line(node) for node in graph.nodes if node.kind not in ("repo", "cron")}
        before = self._before or {}
        for name, line in now.items():
            if before.get(name) != line:
                say(f"{name}: {line}")
        for name in before.keys() - now.keys():
            say(f"{name}: deleted")
        if not now and self._before is None:
            say(terminal_graph.NONE)
        self._before = now


def _line(node: GraphNode) -> str:
    """The state of a pipeline in words that stay the same while nothing happens."""
    job = node.job
    reason = f": {node.reason}" if node.reason else ""
    if job is None:
        return f"{node.state}{reason}"
    if job.ended:
        return f"{result(job)}{reason} (commit {job.id[:12]})"
    datums = f", {counted(job.total, 'datum', 'datums')}" if job.started and job.total else ""
    return f"{node.state}{datums}{reason} (commit {job.id[:12]})"


def _is_busy(node: GraphNode) -> bool:
    return node.kind not in _ENDLESS and node.job is not None and not node.job.ended
