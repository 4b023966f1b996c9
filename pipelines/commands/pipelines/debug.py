"""The commands for finding the cause of a failure."""

from pathlib import Path
from typing import Annotated

import typer

from pipelines.client.jobs import datum_rerun
from pipelines.client.server import debug_dump
from pipelines.cluster import gpu_holders
from pipelines.commands.kit.app import App
from pipelines.commands.kit.command_connection import open_connection
from pipelines.commands.kit.options import AddressOption, output_option
from pipelines.commands.kit.terminal import console, display_path, files, say
from pipelines.errors import LookalikeError
from stages.datum.text_format import visible

app = App()
debug_app = App(help="Find the cause of a failure.", no_args_is_help=True)
app.add_typer(debug_app, name="debug")

_SHORT = 12
"""Digits of a datum's id in its directory's name."""


@debug_app.command(
    "datum",
    examples=("lookalike debug datum features", "lookalike debug datum features@4f1d2c0a9b8e47d6a5f3c2b1e0d9f8a7 0c1d"),
)
def datum(
    job: Annotated[
        str,
        typer.Argument(metavar="PIPELINE[@JOB]", help="The pipeline of the datum, and its job [default: the newest]."),
    ],
    identity: Annotated[
        str,
        typer.Argument(
            metavar="DATUM", help="The id of the datum, or its beginning [default: the first failed datum]."
        ),
    ] = "",
    output: Annotated[Path | None, output_option("A new directory for its files [default: debug/...].")] = None,
    address: AddressOption = "",
) -> None:
    """Run one datum of a job again, alone, and keep its inputs, variables, output and log (localpachd only).

    No commit changes, and nothing downstream is computed. The exit code is 1 if the datum fails.
    """
    connection = open_connection(address)
    pipeline, _, named = job.partition("@")
    if gpu_holders.local_leases(connection) is None:
        raise LookalikeError(
            f"only localpachd can run a datum alone, and {connection.address} is another server: `lookalike status` "
            f"shows the reasons of failures, `lookalike logs {pipeline}` what the datums wrote"
        )
    found, chosen = datum_rerun.choose(connection, pipeline, named, identity)
    to = output or _free(Path("debug") / f"{pipeline}-{chosen[:_SHORT]}")
    if to.exists():
        raise LookalikeError(f"{to} exists already: name another directory, or remove it")
    say(f"running datum {chosen} of {pipeline}@{found.id} again")
    rerun = datum_rerun.run(connection, found, chosen, to, _line)
    say(
        f"its inputs and output are in {display_path(to)}/pfs, its variables in {display_path(to)}/env, "
        f"its log in {display_path(to)}/log"
    )
    if rerun.failed:
        before = (
            f"; the reason in its job: {rerun.failed_before}" if rerun.failed_before else "; it succeeded in its job"
        )
        same = "; it failed in its job for the same reason" if rerun.failed == rerun.failed_before else before
        raise LookalikeError(f"the datum failed: {rerun.failed}{same}")
    if rerun.failed_before:
        say(f"it succeeded this time; it failed in its job: {rerun.failed_before}")
    elif rerun.changed:
        say(f"it succeeded, but its output differs from its job's in {files(len(rerun.changed))}:")
        for path in rerun.changed:
            say(f"  {path}")
    else:
        say("it succeeded, with the same output as in its job")


@debug_app.command("dump", examples=("lookalike debug dump report.tgz",))
def dump(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new .tgz file.")] = Path("debug.tgz"),
    address: AddressOption = "",
) -> None:
    """Write everything that a report of a bug needs into one archive: versions, history, logs, the state of the server.

    Secret variables and tokens are hidden in it, and a cluster's tables of tokens and values of Helm left out. Look
    through it before you send it: a secret that user code writes into its log cannot always be told.
    """
    left_out = debug_dump.save(
        open_connection(address), file, lambda part, done, total: say(f"  {part}: {done} of {total}")
    )
    if left_out:
        say(f"left out {files(left_out)} that may hold secrets: {debug_dump.LEFT_OUT} in it names them")
    say(f"wrote {display_path(file)}: look through it before you send it")


def _line(text: str, user: bool) -> None:
    style = None if user else "dim"
    console.print(f"  {visible(text)}", style=style, markup=False, emoji=False, highlight=False, soft_wrap=True)


def _free(wanted: Path) -> Path:
    """The path, with a number if it is taken."""
    number, path = 1, wanted
    while path.exists():
        number += 1
        path = wanted.with_name(f"{wanted.name}-{number}")
    return path
