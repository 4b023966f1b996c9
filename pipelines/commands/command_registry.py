"""The commands by name, with a line of help for each, and the modules that they are loaded from.

A command's module is imported when the command runs or shows its own help: most of them need packages that take long to
import, and `lookalike --help` needs none.
"""

import importlib
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand

from pipelines.commands.kit.app import App, AppGroup


class CommandEntry(NamedTuple):
    """module: below pipelines.commands. summary: one line for the list of all commands."""

    module: str
    summary: str


GROUPS = {
    "Library": {
        "add": CommandEntry("library.add", "Add pictures to the library."),
        "sync": CommandEntry("library.sync", "Mirror a folder in the library, once or continually."),
        "remove": CommandEntry("library.remove", "Remove pictures from the library, or queries."),
        "restore": CommandEntry("library.restore", "Put removed pictures, or older versions, back as they were."),
        "undo": CommandEntry("library.undo", "Take the last change of the library's pictures back."),
        "compact": CommandEntry("library.compact", "Join small blocks and single files, at a price that is shown."),
        "duplicates": CommandEntry("library.duplicates", "Find exact copies in the library, and near ones on request."),
        "listing": CommandEntry("library.listing", "Let the pipelines keep the pictures of buckets in the library."),
        "attributes": CommandEntry("library.attributes", "Give pictures attributes from tables of your own."),
        "vectors": CommandEntry("library.vectors", "Search by vectors that another model has computed."),
        "quality": CommandEntry("library.quality_report", "List blurred, dark, flat and odd pictures, to look at."),
        "show": CommandEntry("library.show", "Show pictures on the terminal, or write them as PNG files."),
        "export": CommandEntry("library.export_import", "Write the library with its history as one tar."),
        "import": CommandEntry("library.export_import", "Rebuild an exported library on this server."),
    },
    "Ask": {
        "query": CommandEntry("ask.query", "Search the library for look-alikes of pictures."),
        "serve": CommandEntry("service.serve", "Search in the browser, over HTTP and from Python."),
        "results": CommandEntry("ask.results", "Write result sheets, current or earlier ones."),
        "classify": CommandEntry(
            "classify.classify", "Train classifiers on labelled pictures, compare and serve them."
        ),
    },
    "Explain": {
        "trace": CommandEntry("explain.trace", "Follow an answer back to its files, jobs and commits."),
        "history": CommandEntry("explain.history", "Show the changes of the library: when, by whom, and their effect."),
        "diff": CommandEntry("explain.diff", "Show whose neighbours changed between two commits, and why."),
        "map": CommandEntry("explain.map_layout", "Lay the library out as a map, for the page."),
        "evaluate": CommandEntry("explain.evaluate", "Measure by labels how good the nearest pictures are."),
    },
    "Pipelines": {
        "deploy": CommandEntry("pipelines.deploy", "Create or update repos and pipelines."),
        "upgrade": CommandEntry("pipelines.upgrade", "Upgrade the pipelines to the installed version, or go back."),
        "model": CommandEntry("pipelines.models", "Make a backbone and push it."),
        "status": CommandEntry("pipelines.status", "Show the library at a glance, and every pipeline with its jobs."),
        "watch": CommandEntry("pipelines.watch", "Show the pipelines as a graph, live while jobs run."),
        "jobs": CommandEntry("pipelines.records", "Show the last jobs of all pipelines, or the datums of one job."),
        "commits": CommandEntry("pipelines.records", "Show the commits of repos, also of pipelines, with their ids."),
        "logs": CommandEntry("pipelines.records", "Show the lines that user code has written to the logs."),
        "debug": CommandEntry("pipelines.debug", "Find the cause of a failed datum, or collect a bug report."),
        "gpus": CommandEntry("pipelines.gpus", "Show the machines with GPUs, and the number in use."),
        "check": CommandEntry("pipelines.deploy", "Check specifications without a server."),
        "specs": CommandEntry("pipelines.deploy", "Write the specifications with overlays as plain files."),
        "init": CommandEntry("pipelines.init", "Write specifications to a directory of your own, to change them."),
    },
    "Server": {
        "demo": CommandEntry("server.server", "Run everything on sample pictures, from server to result sheets."),
        "up": CommandEntry("server.server", "Start the local server of this directory's library."),
        "down": CommandEntry("server.server", "Stop the local server. Repos and results stay on disk."),
        "stop": CommandEntry("server.server", "Stop all running and waiting jobs of lookalike."),
    },
}
"""The commands by what they are about, in the order of the help."""

COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}


class LazyGroup(AppGroup):
    """The group of all commands. Lists them by what they are about, and loads the one that is called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name, short_help=each.summary) for name, each in COMMANDS.items()}

    def list_commands(self, ctx: Any) -> list[str]:
        """The names in the order of the help."""
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes each group of commands with their summaries."""
        width = max(map(len, COMMANDS))
        for title, entries in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), each.summary) for name, each in entries.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The name and the command at the front of the arguments, and the rest of these."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, load(name) if name is not None else listed, rest


def load(name: str) -> Any:
    """The command of that name, or the group of commands, imported from its module."""
    parent = App()
    parent.add_typer(module(COMMANDS[name].module).app)
    return typer.main.get_group(parent).commands[name]


def module(name: str) -> Any:
    """A module below pipelines.commands."""
    return importlib.import_module(f"pipelines.commands.{name}")
