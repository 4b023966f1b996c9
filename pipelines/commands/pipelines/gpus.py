"""The command for GPUs."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Column, Table

from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.cluster import gpu_holders
from pipelines.cluster.gpu_holders import GpuMachine
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_connection
from pipelines.commands.kit.options import AddressOption, JsonOption
from pipelines.commands.kit.terminal import console, plain_table, say, say_json
from stages.datum.text_format import counted, visible

app = App()


@app.command(examples=("lookalike gpus --details", "lookalike gpus --json"))
def gpus(
    details: Annotated[bool, typer.Option("--details", "-d", help="Show the pipelines that hold them.")] = False,
    as_json: JsonOption = False,
    address: AddressOption = "",
) -> None:
    """Show the machines that have GPUs, and the number of GPUs in use."""
    connection = open_connection(address)
    found = gpu_holders.read(connection).nodes
    if as_json:
        say_json([{**asdict(node), "allocated": node.allocated} for node in found])
        return
    if found:
        console.print(_table(found, details))
    total, allocated = sum(node.total for node in found), sum(node.allocated for node in found)
    if total:
        say(f"{allocated} of {counted(total, 'GPU', 'GPUs')} allocated ({allocated / total:.0%})")
        return
    if found:  # localpachd's machine
        say(
            "this machine has no GPU: pipelines that request one run on the CPU, or wait if the server has "
            "--strict-gpus"
        )
    else:
        say("no node of the cluster has GPUs: pipelines that request one wait until such a node joins")
    for name, info in ProjectJobs(connection).pipelines().items() if details else ():
        if wanted := info.details.resource_limits.gpu.number:
            say(f"  {name} requests {counted(wanted, 'GPU', 'GPUs')} per worker")


def _table(nodes: list[GpuMachine], details: bool) -> Table:
    words = [Column(name, overflow="fold") for name in ("node", "status", "kind")]
    table = plain_table(*words, numbers=("GPUs", "allocated"))
    for node in nodes:
        table.add_row(visible(node.name), node.status, visible(node.product), str(node.total), str(node.allocated))
        for holder in node.holders if details else ():
            whose = f"  {holder.pipeline or 'outside Pachyderm'}"
            table.add_row(visible(whose), "", visible(holder.worker), "", str(holder.gpus))
    return table
