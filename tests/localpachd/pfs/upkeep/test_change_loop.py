"""The loop that looks after every change: after failures, too, and until it is stopped."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue

import pytest

from localpachd.pfs.changes import EVERYTHING, ChangeNotifier, TopicChanges
from localpachd.pfs.upkeep.change_loop import ChangeLoop


@pytest.fixture
def changes() -> ChangeNotifier:
    return ChangeNotifier()


@pytest.fixture
def seen() -> "SimpleQueue[TopicChanges]":
    return SimpleQueue()


@contextmanager
def looking(changes: ChangeNotifier, look: Callable[[TopicChanges], float | None]) -> Iterator[None]:
    loop = ChangeLoop("test", changes, look, pause=60)
    loop.start()
    try:
        yield
    finally:
        loop.stop()


def test_it_looks_at_everything_first_and_then_at_what_changed(
    changes: ChangeNotifier, seen: "SimpleQueue[TopicChanges]"
) -> None:
    with looking(changes, lambda changed: seen.put(changed)):
        assert seen.get(timeout=60) == EVERYTHING
        changes.notify(["a topic"])
        assert seen.get(timeout=60) == TopicChanges(frozenset(["a topic"]))
    assert seen.empty()


def test_after_a_failure_it_looks_at_everything_again(
    changes: ChangeNotifier, seen: "SimpleQueue[TopicChanges]", caplog: pytest.LogCaptureFixture
) -> None:
    """A look that failed may have missed any change, so the next one must not be of the newest change alone."""

    def look(changed: TopicChanges) -> float | None:
        seen.put(changed)
        if "bad" in changed.topics:
            raise OSError("no space left")
        return None

    with looking(changes, look):
        assert seen.get(timeout=60) == EVERYTHING
        changes.notify(["bad"])
        assert seen.get(timeout=60) == TopicChanges(frozenset(["bad"]))
        changes.notify(["good"])
        assert seen.get(timeout=60) == EVERYTHING
        changes.notify(["better"])
        assert seen.get(timeout=60) == TopicChanges(frozenset(["better"]))
    assert "the test failed; trying again in 60 s" in caplog.text
