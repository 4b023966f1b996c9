"""The `lookalike` command: its groups of commands put together. Every failure ends as one line that says what to do."""

import os
from typing import Annotated

import grpc
import typer

from pipelines.client.server.grpc_errors import words_of
from pipelines.commands.command_registry import LazyGroup, module
from pipelines.commands.kit import interrupts, terminal
from pipelines.commands.kit.app import SETTINGS
from pipelines.errors import LookalikeError

_NAME = "lookalike"
_DEBUG = "LOOKALIKE_DEBUG"

_EXPECTED = (LookalikeError, grpc.RpcError, OSError)

app = typer.Typer(
    name=_NAME,
    cls=LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=SETTINGS,
    rich_markup_mode=None,
)


def _say_version(wanted: bool) -> None:
    if wanted:
        terminal.say(module("kit.version").TEXT)
        raise typer.Exit


@app.callback()
def lookalike(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Image-similarity search as a Pachyderm pipeline, on this machine or on a cluster."""
    interrupts.begin()


def run() -> int:
    """Runs the command; returns its exit status."""
    try:
        app(prog_name=_NAME)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except Exception as error:
        if os.environ.get(_DEBUG) and not isinstance(error, _EXPECTED):
            raise
        interrupts.over()
        if not interrupts.pressed():
            terminal.complain(_words(error))
    finally:
        terminal.only_data(False)
        terminal.be_brief(False)
    return 1


def _words(error: Exception) -> str:
    if isinstance(error, LookalikeError):
        return str(error)
    if isinstance(error, grpc.RpcError | ConnectionError):
        return words_of(error)
    if isinstance(error, OSError):
        return f"{error.filename or 'the system'}: {error.strerror or error}"
    return f"a fault of lookalike's own, please report it ({type(error).__name__}: {error}); {_DEBUG}=1 shows more"
