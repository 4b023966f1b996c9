"""Owns a load of HTTP requests: clients that ask one question after the other, and the time of each answer. A program
of its own, so that its work is not the measured process's: `python -m benchmarks.service.httpload` reads a Load as JSON
from stdin and writes a Taken to stdout."""

import asyncio
import json
import sys
import time
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from subprocess import run

_LONGEST = 120.0
"""Seconds after which an answer counts as lost."""


@dataclass(frozen=True, slots=True)
class Load:
    """So many clients, each with a connection of its own, for so many seconds, or until each has asked `most`
    questions. The bodies take turns."""

    port: int
    kind: str  # of the bodies, as Content-Type
    bodies: Sequence[bytes]
    clients: int = 1
    seconds: float = 3600.0
    most: int = 1_000_000
    path: str = "/search"


@dataclass(slots=True)
class Taken:
    """Seconds of each answered question; those beside its features, where the service tells them; the numbers of 429,
    of other refusals, and of questions without an answer; the seconds of all."""

    answered: list[float] = field(default_factory=list)
    beside: list[float] = field(default_factory=list)
    refused: int = 0
    failed: int = 0
    lost: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.answered) / self.seconds

    def share(self, of: float, beside: bool = False) -> float:
        """The time within which that share of the questions was answered, in milliseconds."""
        times = sorted(self.beside if beside else self.answered)
        return 1000 * times[min(len(times) - 1, int(of * len(times)))]


def measure(load: Load) -> Taken:
    """Puts the load on a server on this machine."""
    asked = asdict(load) | {"bodies": [b64encode(each).decode() for each in load.bodies]}
    done = run(
        [sys.executable, "-m", "benchmarks.service.httpload"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
    )
    return Taken(**json.loads(done.stdout))


class _Clients:
    def __init__(self, load: Load) -> None:
        self._load = load
        head = f"POST {load.path} HTTP/1.1\r\nHost: 127.0.0.1:{load.port}\r\nContent-Type: {load.kind}\r\n"
        self._requests = [f"{head}Content-Length: {len(each)}\r\n\r\n".encode() + each for each in load.bodies]
        self._next = 0
        self.taken = Taken()

    async def go(self) -> None:
        begun = time.perf_counter()
        until = begun + self._load.seconds
        await asyncio.gather(*(self._client(until) for _ in range(self._load.clients)))
        self.taken.seconds = time.perf_counter() - begun

    async def _client(self, until: float) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._load.port)
        for _ in range(self._load.most):
            if time.perf_counter() >= until:
                break
            request = self._requests[self._next % len(self._requests)]
            self._next += 1
            try:
                await asyncio.wait_for(self._ask(reader, writer, request), _LONGEST)
            except (OSError, asyncio.IncompleteReadError, TimeoutError, ValueError):
                self.taken.lost += 1
                writer.close()
                reader, writer = await asyncio.open_connection("127.0.0.1", self._load.port)
        writer.close()

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> None:
        begun = time.perf_counter()
        writer.write(request)
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(head.partition("content-length:")[2].split("\r\n")[0])
        body = await reader.readexactly(length)
        took = time.perf_counter() - begun
        status = int(head.split()[1])
        if status == 200:
            self.taken.answered.append(took)
            if self._load.clients == 1:  # reading answers takes time that others would wait for
                told = json.loads(body).get("seconds", {})
                self.taken.beside.append(took - float(told.get("features") or 0))
        elif status == 429:
            self.taken.refused += 1
            wait = head.partition("retry-after:")[2].split("\r\n")[0].strip()
            await asyncio.sleep(float(wait or 1))
        else:
            self.taken.failed += 1


def main() -> None:
    """Measures the load that stdin describes."""
    asked = json.load(sys.stdin)
    load = Load(**(asked | {"bodies": [b64decode(each) for each in asked["bodies"]]}))
    clients = _Clients(load)
    asyncio.run(clients.go())
    json.dump(asdict(clients.taken), sys.stdout)


if __name__ == "__main__":
    main()
