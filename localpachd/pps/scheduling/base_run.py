"""The base of the scheduler's runs: work in a thread of its own until it is done or cancelled."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from localpachd.pps.pps_entities import Job, WorkerStatus


class Cancellable(Protocol):
    """A part of a run that can be stopped from another thread."""

    def cancel(self) -> None:
        """Stops it now; does nothing when it has ended."""


P = TypeVar("P", bound=Cancellable)


class BaseRun(ABC):
    """One piece of work in a thread, for a job or for a spout, whose `job` has the id of its spec commit. When it has
    ended, the thread calls `over`."""

    def __init__(self, kind: str, job: Job, over: Callable[["BaseRun"], None]) -> None:
        self.job = job
        self._over = over
        self._cancelled = threading.Event()
        self._lock = threading.Lock()
        self._part: Cancellable | None = None
        self._thread = threading.Thread(target=self._main, name=f"{kind} {job}")

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
            self._over(self)

    @property
    def status(self) -> tuple[WorkerStatus, ...]:
        """The busy workers of a job; () for a spout."""
        return ()

    def restart_datums(self, filters: Sequence[str]) -> bool:
        """Ends the present attempts of running datums whose inputs match all filters. Returns whether any do."""
        return False

    @abstractmethod
    def _work(self) -> None:
        """Does the work; returns soon after the run was cancelled."""
