"""The `lookalike` command: its groups of commands put together. Every failure ends as one line that says what to do."""

import os
import sys
from importlib import metadata
from typing import Annotated, NoReturn

import grpc
import typer

from pipelines.client.failures import cause, explain
from pipelines.commands import interrupts, terminal
from pipelines.commands.app import SETTINGS
from pipelines.commands.loading import Commands
from pipelines.errors import LookalikeError

_NAME = "lookalike"
_DEBUG = "LOOKALIKE_DEBUG"

app = typer.Typer(
    name=_NAME,
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=SETTINGS,
    rich_markup_mode=None,
)


def _say_version(wanted: bool) -> None:
    if wanted:
        terminal.say(f"{_NAME} {metadata.version(_NAME)}")
        raise typer.Exit


@app.callback()
def lookalike(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Image-similarity search as a Pachyderm pipeline, on this machine or on a cluster."""


def main() -> NoReturn:
    """The command's entry point: exits with 0; 2 after a wrong command line; 130 after Ctrl-C; 1, after one line on
    stderr, for the rest."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # TextIO does not promise it
    interrupts.listen()
    interrupts.leave(_run())


def _run() -> int:
    """Runs the command; returns its exit status."""
    try:
        app(prog_name=_NAME)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except LookalikeError as error:
        terminal.complain(str(error))
    except (grpc.RpcError, ConnectionError) as error:
        failed = cause(error)
        terminal.complain(str(error) if failed is None else explain(failed))
    except OSError as error:
        terminal.complain(f"{error.filename or 'the system'}: {error.strerror or error}")
    except Exception as error:
        if os.environ.get(_DEBUG):
            raise
        terminal.complain(
            f"a fault of lookalike's own, please report it ({type(error).__name__}: {error}); {_DEBUG}=1 shows more"
        )
    return 1


if __name__ == "__main__":
    main()
