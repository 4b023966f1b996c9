"""Random calls of the whole API: no answer is an internal error or a text of Python, and the server goes on."""

import random
import threading
from pathlib import Path

import grpc
import pytest

from tests.fuzz.calls import Fuzzer
from tests.fuzz.world import furnish
from tests.servers import Localpachd, StartPachd

_SEEDS = (1, 2)
_CALLS = 600
_SOAK_SEEDS = 4
_SOAK_CALLS = 40_000
_FURNISHED = 300
"""Calls after which what was deleted is made again."""


def _run(server: Localpachd, fuzzer: Fuzzer, calls: int) -> None:
    for number in range(calls):
        if number % _FURNISHED == 0:
            furnish(fuzzer)
        fuzzer.step()
    assert server.process.poll() is None


@pytest.mark.timeout(1800)
def test_no_request_has_an_internal_error(
    start_pachd: StartPachd, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    soak = bool(request.config.getoption("--soak"))
    seeds = random.sample(range(1 << 32), _SOAK_SEEDS) if soak else _SEEDS
    server = start_pachd(tmp_path / "root")
    options = (("grpc.use_local_subchannel_pool", 1),)
    channels = [grpc.insecure_channel(server.address.removeprefix("grpc://"), options) for _ in seeds]
    fuzzers = [Fuzzer(channel, seed) for channel, seed in zip(channels, seeds, strict=True)]
    threads = [threading.Thread(target=_run, args=(server, each, _SOAK_CALLS if soak else _CALLS)) for each in fuzzers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for channel in channels:
        channel.close()
    for each in fuzzers:
        shown = "\n".join(f"{method} {answer}\n    {asked}" for (method, answer), asked in sorted(each.faults.items()))
        assert not each.faults, f"seed {each.seed}:\n{shown}"
        assert each.codes["OK"] > sum(each.codes.values()) // 5, "the calls no longer reach anything"
    server.stop()
    log = (tmp_path / "root.log").read_text()
    assert "Traceback" not in log, log[log.index("Traceback") - 300 :][:4000]
