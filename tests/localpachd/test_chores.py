import logging
import threading

import pytest

from localpachd.chores import ChoreThread


def test_chores_are_repeated_even_if_one_fails(caplog: pytest.LogCaptureFixture) -> None:
    rounds = 0
    enough = threading.Event()

    def fail() -> None:
        raise OSError("no space left")

    def count() -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 3:
            enough.set()

    chores = ChoreThread({"tidy up": fail, "count": count}, 0.001)
    with caplog.at_level(logging.ERROR):
        chores.start()
        assert enough.wait(30)
        chores.stop()
    done = rounds
    assert "cannot tidy up; retrying in" in caplog.text
    assert rounds == done >= 3


def test_chores_can_be_stopped_before_they_start() -> None:
    ChoreThread({}, 3600).stop()
