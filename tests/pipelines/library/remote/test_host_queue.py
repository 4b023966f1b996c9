"""Work at many hosts: how much at a time, what is tried again, and what is not."""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from pipelines.library.remote import host_queue
from pipelines.library.remote.host_queue import TRIES, HostQueue, Outcome, TryAgainError


def host_of(item: str) -> str:
    return item[0]


def test_no_host_gets_more_than_its_share_and_none_waits_for_another() -> None:
    lock, running, most = threading.Lock(), Counter[str](), Counter[str]()
    slow = threading.Event()

    def work(item: str) -> str:
        with lock:
            running[item[0]] += 1
            most[item[0]] = max(most[item[0]], running[item[0]])
        if item[0] == "a":
            assert slow.wait(30)
        with lock:
            running[item[0]] -= 1
        return item.upper()

    items = [f"a{number}" for number in range(20)] + [f"b{number}" for number in range(100)]
    found: list[Outcome[str, str]] = []
    for outcome in HostQueue(work, host_of, at_a_host=3).run(iter(items)):
        found.append(outcome)
        if sum(each.item[0] == "b" for each in found) == 100:  # all of b, while a's wait
            slow.set()
    assert sorted(each.result or "" for each in found) == sorted(each.upper() for each in items)
    assert max(most.values()) <= 3


def test_what_may_succeed_later_is_tried_again_and_what_may_not_is_not() -> None:
    tries = Counter[str]()

    def work(item: str) -> str:
        tries[item] += 1
        if item == "never" or (item == "third" and tries[item] < 3):
            raise TryAgainError("busy", 0.0)
        if item == "gone":
            raise OSError("it is gone")
        return item

    found = {
        each.item: each for each in HostQueue(work, host_of, first_wait=0.001).run(iter(["never", "third", "gone"]))
    }
    assert found["third"].result == "third" and tries["third"] == 3
    assert (found["never"].error, tries["never"]) == ("busy", TRIES)
    assert (found["gone"].error, tries["gone"]) == ("it is gone", 1)


def test_the_server_says_how_long_to_wait() -> None:
    began: list[float] = []

    def work(item: str) -> str:
        began.append(time.monotonic())
        if len(began) == 1:
            raise TryAgainError("later", 0.3)
        return item

    assert [each.result for each in HostQueue(work, host_of).run(iter(["a"]))] == ["a"]
    assert began[1] - began[0] >= 0.3


def test_items_are_taken_as_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_queue, "WINDOW", 10)
    taken = itertools.count()
    last = 0

    def endless() -> Iterator[str]:
        nonlocal last
        for last in taken:
            yield f"a{last}"

    run = HostQueue(lambda item: item, host_of).run(endless())
    for _ in range(50):
        next(run)
    assert last < 50 + 10 + 1
    run.close()  # type: ignore[attr-defined]


def test_a_fault_of_ours_is_no_failure_of_a_picture() -> None:
    with pytest.raises(ZeroDivisionError):
        list(HostQueue(lambda item: 1 / 0, host_of).run(iter(["a"])))
