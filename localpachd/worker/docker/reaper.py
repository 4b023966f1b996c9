"""A program that outlives a server for a moment, to remove the containers that it has left.

A killed process takes its own processes along, but containers are the engine's. Knows one engine and one label.
"""

import subprocess
import sys
from pathlib import Path

from localpachd.worker.docker import container
from localpachd.worker.docker.engine import Engine, EngineError


class Reaper:
    """Stands by for this process: when it ends, in whatever way, its containers with `label` (`KEY=value`) go."""

    def __init__(self, engine: Engine, label: str) -> None:
        # The pipe to it closes with this process. What is sent to our group (Ctrl-C) must not reach it.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, str(engine.path), label],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def close(self) -> None:
        """Sends it home; it looks once more on its way."""
        self._process.communicate()


def clear(engine: Engine, label: str) -> None:
    """Removes every container with a label. Raises EngineError."""
    filters = f'{{"label": ["{label}"]}}'
    for left in engine.call("GET", "/containers/json", all="true", filters=filters):
        container.remove(engine, left["Id"])


def main(socket: str, label: str) -> int:
    """Waits for the end of its input, and clears."""
    sys.stdin.buffer.read()
    try:
        clear(Engine(Path(socket)), label)
    except EngineError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
