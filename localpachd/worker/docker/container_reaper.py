"""The reaper: a program that outlives a server for a moment and removes its containers.

The kernel ends the processes of a killed server, but containers belong to the engine. Knows one engine and one label.
"""

import subprocess
import sys
from pathlib import Path

from localpachd.worker.docker import container
from localpachd.worker.docker.container_engine import ContainerEngine, EngineError


class ContainerReaper:
    """Waits for the end of this process, whatever the reason, and removes its containers with `label` (`KEY=value`)."""

    def __init__(self, engine: ContainerEngine, label: str) -> None:
        # The pipe to it closes with this process. A signal to our process group (Ctrl-C) must not reach it.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, str(engine.path), label],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def close(self) -> None:
        """Ends the program, which removes containers one last time."""
        self._process.communicate()


def clear(engine: ContainerEngine, label: str) -> None:
    """Removes every container with a label. Raises EngineError."""
    filters = f'{{"label": ["{label}"]}}'
    for left in engine.call("GET", "/containers/json", all="true", filters=filters):
        container.remove(engine, left["Id"])


def main(socket: str, label: str) -> int:
    """Waits for the end of standard input, then removes the containers; returns the exit status."""
    sys.stdin.buffer.read()
    try:
        clear(ContainerEngine(Path(socket)), label)
    except EngineError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
