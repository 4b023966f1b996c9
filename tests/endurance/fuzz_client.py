"""Random calls to a server of their own, for as long as the rounds go on."""

import random
import shutil
import threading
from collections import Counter
from pathlib import Path

import grpc

from tests.endurance.servers import RestartedServer
from tests.fuzz.calls import Fuzzer
from tests.fuzz.world import furnish

_FURNISHED = 300
_CALLS = 20_000
"""Calls after which what was deleted is made again, and those after which another server begins."""


class FuzzClient:
    """Makes calls between `start` and `stop`; `codes` counts their answers, `problems` has the wrong ones."""

    def __init__(self, directory: Path, seed: int) -> None:
        self._directory = directory
        self._chance = random.Random(seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.codes: Counter[str] = Counter()
        self.problems: list[str] = []

    def start(self) -> None:
        """Begins to call."""
        self._thread.start()

    def stop(self) -> None:
        """Ends after the present call."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            self._directory.mkdir()
            self._one_server(RestartedServer(self._directory), self._chance.randrange(1 << 32))
            shutil.rmtree(self._directory)

    def _one_server(self, server: RestartedServer, seed: int) -> None:
        server.start()
        with grpc.insecure_channel(server.address.removeprefix("grpc://")) as channel:
            fuzzer = Fuzzer(channel, seed)
            for number in range(_CALLS):
                if self._over.is_set() or not server.running:
                    break
                if number % _FURNISHED == 0:
                    furnish(fuzzer)
                fuzzer.step()
        self.codes += fuzzer.codes
        wrong = [f"{call} {answer}: {request}" for (call, answer), request in fuzzer.faults.items()]
        wrong += [] if server.running else ["the server has ended"]
        wrong += server.stop()[1]
        wrong += server.tracebacks
        self.problems += [f"random calls, seed {seed}: {each}" for each in wrong]
