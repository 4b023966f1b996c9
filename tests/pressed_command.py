"""`lookalike` for which Ctrl-C is pressed at a moment of its life. Moments are counted by what Python audits: imports,
opened files, sockets, programs, sleeps. Runs in a Python of its own, or forked from one that has imported all but our
own modules."""

import importlib
import os
import signal
import sys

from tests import forked_command

MOMENT = "LOOKALIKE_TESTS_MOMENT"
"""The variable with the number of the moment. With 0, the number of all is printed at the end."""

prepare = forked_command.prepare


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.getsid(0) != os.getpid():
        os.setsid()
    moment, happened = int(os.environ.pop(MOMENT)), 0

    def happen(event: str, arguments: object) -> None:
        nonlocal happened
        happened += 1
        if happened == moment:
            os.kill(0, signal.SIGINT)  # to the group, as a terminal does

    command = importlib.import_module("pipelines.cli")
    sys.addaudithook(happen)
    try:
        command.main()
    finally:
        if not moment:
            print(happened, file=sys.stderr)
