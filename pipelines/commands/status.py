"""The command that shows the state of the library and of its pipelines."""

from dataclasses import fields

from pipelines.cluster import overview, status
from pipelines.cluster.status import Status
from pipelines.commands import display
from pipelines.commands.app import App
from pipelines.commands.connecting import connected
from pipelines.commands.options import AddressOption, JsonOption
from pipelines.commands.terminal import say, say_json
from pipelines.specifications import own, reading

app = App()


@app.command(
    "status",
    examples=("lookalike status", "lookalike status --json"),
)
def show_status(as_json: JsonOption = False, address: AddressOption = "") -> None:
    """Show the library at a glance: pictures, queries, model, disk, GPUs and jobs; then every pipeline with its running
    and newest jobs, and the reasons of failures and rejections."""
    connection = connected(address)
    facts = overview.read(connection)
    found = status.read(connection, [spec.name for spec in reading.load(own.current())], connection.namespace)
    if as_json:
        server = {"address": connection.address, "project": connection.project}
        say_json({"server": server, "library": facts, "jobs": display.work(found.pipelines), **_fields(found)})
        return
    say(f"server    {connection.address}, project {connection.project}")
    display.show_overview(facts, found)
    say("")
    display.show_status(found)


def _fields(found: Status) -> dict[str, object]:
    return {each.name: getattr(found, each.name) for each in fields(found)}
