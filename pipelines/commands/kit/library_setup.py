"""What a directory needs before its pictures can be searched: a server on this machine, the pipelines, a backbone."""

from pathlib import Path

from pipelines.client import backbones
from pipelines.client.deployment import deployment
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import Repository
from pipelines.client.server import local_server
from pipelines.client.server.connection import Connection
from pipelines.client.server.grpc_errors import suppress_not_found
from pipelines.client.server.local_server import LocalServer
from pipelines.commands.kit.command_connection import choose_server, open_written_server
from pipelines.commands.kit.terminal import say, say_all
from pipelines.library import backbone_push
from pipelines.specifications import pipeline_specs, specs_directory

BACKBONE = "efficientnet-lite0"
"""The backbone of a library for which none is chosen: it needs no download."""


def begin_library() -> None:
    """Begins a library in this directory, with a server on this machine."""
    say_server(*local_server.up(local_server.default_root()))


def open_searchable_library(address: str) -> tuple[Connection, dict[str, str]]:
    """A connection for a command that puts pictures, with `--address` or "", and what was done before it, in words, by
    commit. A library of this machine gets the pipelines and the backbone that it lacks; of a server elsewhere, others
    decide that."""
    server = choose_server(address)
    connection = open_written_server(server)
    return connection, make_searchable(connection) if server.local else {}


def make_searchable(connection: Connection) -> dict[str, str]:
    """Deploys the pipelines unless there are some, and pushes the default backbone unless there is one. Returns what
    was done, in words, by commit."""
    if not _is_deployed(connection):
        deploy(connection)
    return push_default_backbone(connection)


def _is_deployed(connection: Connection) -> bool:
    """Whether there are pipelines. A list of all takes ten times as long as a look for the first."""
    with suppress_not_found():
        return any(connection.client.inspect_pipeline("preprocess", project_name=connection.project))
    return bool(ProjectJobs(connection).pipelines())


def deploy(connection: Connection) -> None:
    """Deploys the pipelines of the specifications of this directory, or else lookalike's own, and says each step."""
    say_all(map(str, deployment.deploy(connection, pipeline_specs.load(specs_directory.current()))))


def push_default_backbone(connection: Connection) -> dict[str, str]:
    """Pushes the default backbone unless there is one. Returns what was done, in words, by commit."""
    if backbones.current_backbone(Repository(connection, backbones.REPO)) is not None:
        return {}
    say(f"backbone {BACKBONE}: building")
    return {backbone_push.push(connection, BACKBONE).commit: f"pushed {BACKBONE} into {backbones.REPO}"}


def say_server(server: LocalServer, fresh: bool) -> None:
    """Says where a server on this machine runs, and which directories it serves. fresh: whether it was just started."""
    say(f"localpachd {'is running' if fresh else 'was running already'} at {server.address} (process {server.pid})")
    say(f"its state is in {server.root}; pachctl's active context is {local_server.CONTEXT}")
    if server.metrics:
        say(f"its metrics are at {server.metrics}")
    root = Path(server.root)
    if local_server.is_default(root):
        say(f"lookalike uses it in {root.parent} and below")
    else:
        say(f"lookalike uses it with LOOKALIKE_ROOT={root} in the environment, or with --address {server.address}")
