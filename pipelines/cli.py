"""The entry point of the `lookalike` command. It imports next to nothing before it heeds Ctrl-C; the rest, which takes
half a second, is imported when the command is called."""

import importlib
import sys
from typing import NoReturn

from pipelines.commands.kit import interrupts


def main() -> NoReturn:
    """Exits with 0; 2 after a wrong command line; 130, after one line on stderr, if Ctrl-C was pressed; 1, after one
    line on stderr, for the rest."""
    interrupts.listen()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # TextIO does not promise it
    interrupts.leave(importlib.import_module("pipelines.commands.program").run())


if __name__ == "__main__":
    main()
