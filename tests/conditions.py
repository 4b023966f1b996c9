"""Waiting for conditions that no call waits for."""

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def until(look: Callable[[], Value]) -> Value:
    """The first value of `look` that is true; fails if there is none within a minute."""
    deadline = time.monotonic() + 60
    while not (found := look()):
        assert time.monotonic() < deadline, "the condition has not come about within a minute"
        time.sleep(0.02)
    return found
