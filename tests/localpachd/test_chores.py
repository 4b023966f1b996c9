import logging
import threading

import pytest

from localpachd.chores import Chores


def test_chores_are_done_again_and_again_whatever_one_of_them_meets(caplog: pytest.LogCaptureFixture) -> None:
    rounds = 0
    enough = threading.Event()

    def fail() -> None:
        raise OSError("no space left")

    def count() -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 3:
            enough.set()

    chores = Chores({"tidy up": fail, "count": count}, 0.001)
    with caplog.at_level(logging.ERROR):
        chores.start()
        assert enough.wait(30)
        chores.stop()
    done = rounds
    assert "cannot tidy up; it is tried again" in caplog.text
    assert rounds == done >= 3


def test_chores_that_were_never_begun_can_be_stopped() -> None:
    Chores({}, 3600).stop()
