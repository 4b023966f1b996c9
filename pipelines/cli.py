"""The `lookalike` command: its groups of commands put together. Every failure ends as one line that says what to do."""

import os
import sys
from typing import NoReturn

import grpc
import typer

from pipelines.client.failures import cause, explain
from pipelines.commands import interrupts, terminal
from pipelines.commands.loading import Commands
from pipelines.errors import LookalikeError

app = typer.Typer(
    name="lookalike",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_DEBUG = "LOOKALIKE_DEBUG"


@app.callback()
def lookalike() -> None:
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
        app()
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
