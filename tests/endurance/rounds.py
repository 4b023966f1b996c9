"""Rounds of work that each end with a kill or a cut of power, beside a server that is left alone. Judges both."""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.endurance.load import Load
from tests.endurance.servers import RestartedServer
from tests.localpachd.power_disk import PowerDisk

_CUT_EVERY = 10
_VERIFY_EVERY = 10
_SHORTEST, _LONGEST = 10.0, 30.0
_PAUSE = 0.05
"""Seconds between the steps of each client of the server that is left alone."""


@dataclass
class Outcome:
    """What all rounds have come to. `problems` has all that is wrong, with the round; `memory` has the seconds since
    the start and the MiB of the server that is left alone, `peaks` the MiB of the other before each kill, `disk` the
    MiB on the disk of both."""

    rounds: int = 0
    kills: int = 0
    cuts: int = 0
    problems: list[str] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)
    peaks: list[float] = field(default_factory=list)
    disk: list[tuple[float, float]] = field(default_factory=list)
    stop_seconds: list[float] = field(default_factory=list)

    def blame(self, problems: list[str]) -> None:
        """Adds what is wrong in the present round."""
        self.problems += [f"round {self.rounds}: {each}" for each in problems]


class Endurance:
    """The two servers and their clients; `seconds` are those of a round, from and to; each `cut_every`th
    ends with a cut of power, if there is a disk for that."""

    def __init__(
        self,
        directory: Path,
        disk: PowerDisk | None,
        seed: int,
        seconds: tuple[float, float] = (_SHORTEST, _LONGEST),
        cut_every: int = _CUT_EVERY,
    ) -> None:
        self.seed = seed
        self.outcome = Outcome()
        self.killed = RestartedServer(directory, disk)
        (directory / "steady").mkdir()
        self.steady = RestartedServer(directory / "steady")
        self.killed_load = Load(seed, 0.0)
        self.steady_load = Load(seed + 1, _PAUSE)
        self._cut_every = cut_every if disk is not None else 0
        self._chance = random.Random(seed)
        self._seconds = seconds
        self._began = 0.0

    def run(self, until: Callable[[int], bool], stopped: threading.Event, say: Callable[[str], None]) -> None:
        """Rounds until `until`, given the number of those that are over, or until `stopped`; `say` gets a line for
        each. Both servers are judged once more at the end, and emptied."""
        self._began = time.monotonic()
        self.steady.start()
        self.steady_load.begin(self.steady.client)
        self.killed.start()
        while not until(self.outcome.rounds) and not stopped.is_set():
            self.outcome.rounds += 1
            self._round(stopped, say)
        self.outcome.rounds += 1
        self._finish(self.killed, self.killed_load)
        self.steady_load.end()
        self._finish(self.steady, self.steady_load)

    def end(self) -> None:
        """Ends what still runs, as after an error."""
        for load, server in ((self.killed_load, self.killed), (self.steady_load, self.steady)):
            load.killed(server.kill)

    def _round(self, stopped: threading.Event, say: Callable[[str], None]) -> None:
        outcome, server = self.outcome, self.killed
        before = self.killed_load.acknowledged
        self.killed_load.begin(server.client)
        stopped.wait(self._chance.uniform(*self._seconds))
        outcome.peaks.append(server.memory)
        outcome.memory.append((time.monotonic() - self._began, self.steady.memory))
        cut = self._cut_every > 0 and outcome.rounds % self._cut_every == 0
        outcome.blame(self.killed_load.killed(server.cut if cut else server.kill))
        outcome.cuts += cut
        outcome.kills += not cut
        server.start()
        done = self.killed_load.acknowledged - before
        wrong = len(outcome.problems)
        outcome.blame(self.killed_load.problems(server.client()))
        outcome.blame([each.error for each in server.client().fsck()])
        if outcome.rounds % _VERIFY_EVERY == 0:
            outcome.blame(server.fsck("--verify"))
        if not self.steady.running:
            outcome.blame(["the server that is left alone has ended"])
        outcome.disk.append((server.disk, self.steady.disk))
        say(
            f"round {outcome.rounds}  {'cut ' if cut else 'kill'}  {done:6,} acknowledged  "
            f"start {server.start_seconds[-1]:.2f} s  "
            f"memory {outcome.peaks[-1]:.0f}, left alone {outcome.memory[-1][1]:.0f} MiB  "
            f"disk {outcome.disk[-1][0]:.0f}, {outcome.disk[-1][1]:.0f} MiB  "
            + ("\n".join(outcome.problems[wrong:]) or "all there")
        )

    def _finish(self, server: RestartedServer, load: Load) -> None:
        client = server.client()
        self.outcome.blame(load.problems(client))
        self.outcome.blame([each.error for each in client.fsck()])
        self.outcome.blame(server.fsck("--verify"))
        client.delete_all_pipelines()
        client.delete_all_repos()
        self.outcome.blame(server.leaks())
        seconds, left = server.stop()
        self.outcome.stop_seconds.append(seconds)
        self.outcome.blame(left)
        self.outcome.blame(server.tracebacks)
