"""Connections of commands: to the server that is chosen for the directory they are called in, with waits that are said
and end with Ctrl-C."""

import shlex
import sys
from dataclasses import replace

from pipelines.client.branch_head import BranchHead
from pipelines.client.server import local_server
from pipelines.client.server.connection import Connection, ServerTarget, connect
from pipelines.client.server_choice import stopped, target
from pipelines.commands.kit import interrupts
from pipelines.commands.kit.terminal import display_path, say
from pipelines.specifications.pipeline_specs import SOURCES
from stages.datum.text_format import visible

_LONGEST = 100
"""Most characters of a command in the description of its commits."""


class _Waiting:
    """Says each reason once, and again after another: a server can go away twice within a second."""

    def __init__(self) -> None:
        self._said = ""

    def __call__(self, reason: str) -> None:
        interrupts.check()
        if reason and reason != self._said:
            self._said = reason
            say(reason)


def choose_server(address: str) -> ServerTarget:
    """The server for a command with `--address`, or "" without. That of a stopped library is started first."""
    root = stopped(address)
    if root is not None:
        local_server.restart(root)
        say(f"started the server of the library in {display_path(root)}, which was stopped")
    return target(address)


def open_connection(address: str) -> Connection:
    """A connection for a command with `--address`, or "" without."""
    return open_server_connection(choose_server(address))


def open_write_connection(address: str) -> Connection:
    """The same for a command that writes: says where to, and finishes what killed commands have left open."""
    return open_written_server(choose_server(address))


def open_server_connection(server: ServerTarget) -> Connection:
    """A connection to a server that was chosen already."""
    return replace(connect(server, _Waiting()), doing=_typed())


def open_written_server(server: ServerTarget) -> Connection:
    """The same for a server to which a command writes, see `open_write_connection`."""
    connection = open_server_connection(server)
    say(f"writing to {server.words}")
    for repo in SOURCES:
        BranchHead(connection, repo).finish_abandoned()
    return connection


def _typed() -> str:
    """The command as it was typed, shortened."""
    words = visible(shlex.join(sys.argv[1:]))
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"
