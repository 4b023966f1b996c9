"""Owns `lookalike serve` as a process to measure: its start, its metrics and its memory. Puts no load on it."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from benchmarks.kit.trees import status_mib
from pipelines.client.server.connection import Connection


@dataclass(frozen=True, slots=True)
class Served:
    """`lookalike serve`, ready: its process, its port, and the seconds from its start."""

    process: "subprocess.Popen[str]"
    url: str
    port: int
    ready: float

    @property
    def peak(self) -> float:
        """The most memory held since the start, in MiB."""
        return status_mib(self.process.pid, "VmHWM")

    @property
    def private(self) -> float:
        """The memory that it holds now apart from pages of files, in MiB."""
        return status_mib(self.process.pid, "RssAnon")

    def passed(self) -> tuple[float, float]:
        """The pictures that the model has seen, and the times that it computed some together."""
        with urlopen(f"{self.url}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        named = {name: value for name, _, value in (each.rpartition(" ") for each in lines)}
        size = "lookalike_serve_batch_size"
        pictures, times = (float(named[f'{size}_{of}{{work="features"}}']) for of in ("sum", "count"))
        return pictures, times


@contextmanager
def serving(connection: Connection, cache: Path) -> Iterator[Served]:
    """The service of a Pachyderm's library, once it is ready. cache: the directory for the files that it fetches.
    Raises RuntimeError if it ends before."""
    command = [sys.executable, "-c", "from pipelines.cli import main; main()", "serve", "--port", "0", "--no-browser"]
    own = {"XDG_CACHE_HOME": str(cache), "XDG_STATE_HOME": str(cache), "PACHD_ADDRESS": connection.address}
    begun = time.perf_counter()
    process = subprocess.Popen(command, env={**os.environ, **own}, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        url = next(each for each in lines if "http://" in each).split()[-1]
        said = next((each for each in lines if each.startswith("ready in ")), "")
        ready = time.perf_counter() - begun
        if not said:
            raise RuntimeError("the service has ended")
        yield Served(process, url, int(url.rpartition(":")[2]), ready)
    finally:
        process.terminate()
        process.wait()
