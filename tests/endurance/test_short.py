"""The short form of an endurance run, and the judgement itself on servers that lose something."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.endurance import outcome_table, servers
from tests.endurance.load import Load
from tests.endurance.mirrors import Mirror
from tests.endurance.rounds import Endurance
from tests.endurance.servers import RestartedServer
from tests.localpachd import power_disk

_ROUNDS = 3


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[power_disk.PowerDisk | None]:
    if servers.obstacle():
        yield None
        return
    with power_disk.disk(tmp_path) as made:
        yield made


def test_nothing_is_lost_in_a_few_rounds(tmp_path: Path, disk: power_disk.PowerDisk | None) -> None:
    run = Endurance(tmp_path, disk, seed=1, seconds=(0.5, 1.0), cut_every=2)
    said: list[str] = []
    try:
        run.run(lambda rounds: rounds == _ROUNDS, threading.Event(), said.append)
    finally:
        run.end()
    outcome = run.outcome
    assert outcome.problems == []
    assert (outcome.kills, outcome.cuts) == ((2, 1) if disk else (3, 0))
    assert run.killed_load.acknowledged > 50
    assert run.steady_load.acknowledged > 20
    assert run.killed_load.timings.seconds["put of texts"]
    assert len(said) == _ROUNDS
    assert outcome_table.lines(run, None, 0.01)


def test_what_is_missing_is_found(tmp_path: Path) -> None:
    server, load = RestartedServer(tmp_path), Load(2, 0.0)
    server.start()
    client = server.client()
    with contextlib.ExitStack() as held:
        held.callback(server.kill)
        for _ in range(12):
            load.step(client)
        assert load.problems(client) == []
        repo = next(each.repo.name for each in client.list_repo() if each.repo.name.startswith("files"))
        client.put_file_bytes((repo, "master"), "/of/another", b"writer")
        client.delete_secret(next(each.secret.name for each in client.list_secret()))
        client.put_file_bytes(("texts", "master"), "/0.txt", b"text of another writer")
        found = "\n".join(load.problems(client))
    assert f"repo {repo}: 1 files differ, among them /of/another" in found
    assert "secrets lost: ['secret-" in found
    assert "repo texts: 1 files differ, among them /0.txt" in found


def test_a_call_without_an_answer_leaves_two_possibilities() -> None:
    for found, fits in (("before", True), ("after", True), ("else", False)):
        mirror = Mirror("before")
        with contextlib.suppress(RuntimeError), mirror.becoming("after"):
            raise RuntimeError
        assert mirror.settle(found) is fits
        assert mirror.state == found
        assert mirror.acknowledged == 0
    with mirror.becoming("next"):
        pass
    assert not mirror.settle("else")
    assert mirror.acknowledged == 1


def test_memory_that_grows_is_not_flat() -> None:
    growing = [(float(each), 100.0 + each) for each in range(100)]
    settled = [(float(each), 100.0 if each > 30 else each) for each in range(100)]
    assert not outcome_table.flat(growing)
    assert outcome_table.flat(settled)
    assert outcome_table.shares(settled) == (100.0, 100.0)
    assert math.isclose(outcome_table.percentile([3.0, 1.0, 2.0], 50), 2.0)
