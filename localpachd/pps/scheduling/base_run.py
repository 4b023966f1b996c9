"""The base of the scheduler's runs: work in a thread of its own until it is done or cancelled. Knows no jobs."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol, TypeVar


class Cancellable(Protocol):
    """A part of a run that can be stopped from another thread."""

    def cancel(self) -> None:
        """Stops it now; does nothing when it has ended."""


P = TypeVar("P", bound=Cancellable)


class BaseRun(ABC):
    """One piece of work in a thread. When it has ended, the thread calls `over`."""

    def __init__(self, name: str, over: Callable[[], None]) -> None:
        self._over = over
        self._cancelled = threading.Event()
        self._lock = threading.Lock()
        self._part: Cancellable | None = None
        self._thread = threading.Thread(target=self._main, name=name)

    def start(self) -> None:
        self._thread.start()

    def cancel(self) -> None:
        """Stops the work now: kills what is running and starts nothing more."""
        with self._lock:
            self._cancelled.set()
            part = self._part
        if part is not None:
            part.cancel()

    def join(self) -> None:
        self._thread.join()

    def _hold(self, part: P) -> P:
        """Makes `cancel` stop this part, too; a run that has been cancelled already stops it now."""
        with self._lock:
            self._part = part
            cancelled = self._cancelled.is_set()
        if cancelled:
            part.cancel()
        return part

    def _main(self) -> None:
        try:
            self._work()
        finally:
            self._over()

    @abstractmethod
    def _work(self) -> None:
        """Does the work; returns soon after the run was cancelled."""
