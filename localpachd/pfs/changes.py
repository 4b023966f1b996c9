"""One bell for the whole server: rung after every transaction, so that whoever waits looks again instead of polling."""

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Changes:
    """Counts the changes made so far and wakes those who wait for one."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._count = 0

    @property
    def count(self) -> int:
        """How many changes there have been; pass it to `wait_past`."""
        with self._condition:
            return self._count

    def notify(self) -> None:
        """Rings the bell."""
        with self._condition:
            self._count += 1
            self._condition.notify_all()

    def wait_past(self, count: int, timeout: float | None = None) -> int:
        """Blocks until more than `count` changes have been made or `timeout` seconds are over; returns the count."""
        with self._condition:
            self._condition.wait_for(lambda: self._count > count, timeout)
            return self._count

    def wait_for(self, look: Callable[[], T | None], active: Callable[[], bool] = lambda: True) -> T | None:
        """Returns the first result of `look` that is not None, looking again after every change; None once `active`
        is false. Who ends a wait from outside must make `active` false first and then call `notify`."""
        while active():
            count = self.count
            result = look()
            if result is not None:
                return result
            self.wait_past(count)
        return None
