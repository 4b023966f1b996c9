"""`lookalike` for processes that are forked when all that it imports from others has been imported. Its own modules are
imported in each process, as some look at their surroundings."""

import importlib
import os
import signal
import sys

INTERRUPTIBLE = "LOOKALIKE_TESTS_INTERRUPTIBLE"
"""The variable that has a process react to Ctrl-C even if its parent ignores it."""

_OURS = ("pipelines", "stages", "speclang")


def prepare() -> None:
    """Imports what the commands import, and forgets our own modules."""
    registry = importlib.import_module("pipelines.commands.command_registry")
    for name in registry.COMMANDS:
        registry.load(name)
    for name in [each for each in sys.modules if each.partition(".")[0] in _OURS]:
        del sys.modules[name]


def main() -> None:
    if os.environ.pop(INTERRUPTIBLE, ""):
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv[0] = "lookalike"
    importlib.import_module("pipelines.cli").main()
