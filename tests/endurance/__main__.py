"""`python -m tests.endurance`: localpachd under load, killed every 10 to 30 seconds, for hours."""

import argparse
import contextlib
import logging
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.endurance import outcome_table, servers
from tests.endurance.fuzz_client import FuzzClient
from tests.endurance.rounds import Endurance
from tests.localpachd import power_disk

_IMAGE = 2 << 30


def main() -> int:
    """Runs until the time is over or Ctrl-C; the exit status is 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.endurance", description=__doc__)
    parser.add_argument("--hours", type=float, required=True)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    given = parser.parse_args()
    logging.getLogger("grpc").disabled = True  # it tells of every connection that a kill has ended
    stopped = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: stopped.set())
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    with contextlib.ExitStack() as held:
        directory = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="endurance-")))
        disk = None
        if obstacle := servers.obstacle():
            print(f"no power will be cut: {obstacle}", flush=True)
        else:
            disk = held.enter_context(power_disk.disk(directory, _IMAGE))
        run = Endurance(directory, disk, given.seed)
        fuzzing = FuzzClient(directory / "fuzz", given.seed)
        begun = time.monotonic()
        fuzzing.start()
        try:
            run.run(lambda _: time.monotonic() - begun > given.hours * 3600, stopped, _say)
        finally:
            fuzzing.stop()
            run.end()
        return _report(run, fuzzing, (time.monotonic() - begun) / 3600)


def _report(run: Endurance, fuzzing: FuzzClient, hours: float) -> int:
    problems = [*run.outcome.problems, *fuzzing.problems]
    if not outcome_table.flat(run.outcome.memory):
        problems.append("the memory of the server that is left alone grew by more than a tenth in the last quarter")
    print("", *outcome_table.lines(run, fuzzing, hours), *problems, sep="\n", flush=True)
    return 1 if problems else 0


def _say(line: str) -> None:
    print(time.strftime("%H:%M:%S"), line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
