"""Clients at work on one server until it is gone: writers, readers that do not read, followers of logs."""

import contextlib
import random
import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice

import grpc
from python_pachyderm import Client

from tests.endurance.text_client import TextClient
from tests.endurance.writers import Repos, Secrets, Timings, Writer

_UNREAD = 4
_LINES = 50


class Load:
    """The clients of one server, who remember across its lives what it has acknowledged. `pause` is the time in seconds
    between two steps of one client."""

    def __init__(self, seed: int, pause: float) -> None:
        chance = random.Random(seed)
        self.timings = Timings()
        self._pause = pause
        self._writers: Sequence[Writer] = (
            Repos("files", chance.randrange(1 << 32), self.timings),
            Repos("more", chance.randrange(1 << 32), self.timings),
            Secrets("secret", chance.randrange(1 << 32), self.timings),
            TextClient("texts", chance.randrange(1 << 32), self.timings),
        )
        self._threads: list[threading.Thread] = []
        self._doomed = threading.Event()
        self._over = threading.Event()
        self._failures: list[str] = []

    @property
    def acknowledged(self) -> int:
        """The number of changes that the server has acknowledged in all of its lives."""
        return sum(each.acknowledged for each in self._writers)

    def problems(self, client: Client) -> list[str]:
        """What is not as it was acknowledged, and the calls that failed though the server was there."""
        failures, self._failures = self._failures, []
        return failures + [problem for each in self._writers for problem in each.problems(client)]

    def step(self, client: Client) -> None:
        """Makes one step of each writer."""
        for each in self._writers:
            each.step(client)

    def begin(self, connect: Callable[[], Client]) -> None:
        """Lets all clients work, in threads of their own, until the server is gone or `end` is called."""
        self._doomed.clear()
        self._over.clear()
        works = [*(each.step for each in self._writers), _Unread().step, _follow]
        self._threads = [threading.Thread(target=self._work, args=(each, connect())) for each in works]
        for thread in self._threads:
            thread.start()

    def killed(self, kill: Callable[[], list[str]]) -> list[str]:
        """Kills the server while all clients are at work; returns what `kill` does."""
        self._doomed.set()
        left = kill()
        self.end()
        return left

    def end(self) -> None:
        """Waits until all clients have made their last step."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _work(self, step: Callable[[Client], None], client: Client) -> None:
        with contextlib.closing(client._channel):
            while not self._over.wait(self._pause):
                try:
                    step(client)
                except (grpc.RpcError, ConnectionError) as error:  # the latter from python-pachyderm, for the former
                    if self._doomed.is_set():
                        return
                    self._failures.append(f"{step.__qualname__}: {_words(error)}")


class _Unread:
    """A client that begins to read the files of a few repos and leaves the rest with the server."""

    def __init__(self) -> None:
        self._held: deque[object] = deque(maxlen=_UNREAD)

    def step(self, client: Client) -> None:
        for each in client.list_repo():
            if each.repo.name.startswith("texts") and any(True for _ in client.list_commit(each.repo.name)):
                self._held.append(client.get_file_tar((each.repo.name, "master"), "/"))


def _follow(client: Client) -> None:
    """Reads a few lines of a log."""
    for pipeline in client.list_pipeline():
        for _ in islice(client.get_pipeline_logs(pipeline.pipeline.name), _LINES):
            pass


def _words(error: Exception) -> str:
    cause = error.__cause__ if isinstance(error, ConnectionError) else error
    return f"{cause.code().name}: {cause.details()}" if isinstance(cause, grpc.RpcError) else str(error)
