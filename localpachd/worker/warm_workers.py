"""Workers, each with a directory, a workplace in it and the session of its batched process, and those of them that are
kept between datum sets.

A kept worker ends when it has waited too long, when others need its place, when a version of its pipeline is over, and
when what its process has read once has changed. Knows neither datums nor backends.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from localpachd.worker.batch_session import BatchSession
from localpachd.worker.commands import CommandProcess
from localpachd.worker.layout.tree_removal import remove
from localpachd.worker.tasks import Task
from localpachd.worker.workplace import NotReusable, Workplace

_MEBI = 1 << 20

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Worker:
    """One worker of a task. `state` is that of all that its processes have read once (`WorkplaceBackend.state`), "" if
    they are not to be kept."""

    task: Task
    directory: Path
    workplace: Workplace
    session: BatchSession
    state: str

    def close(self, complain: Callable[[str], None]) -> None:
        """Ends the process and releases all else; `complain` is told of what cannot be removed."""
        try:
            self.session.stop()
        finally:
            try:
                self.workplace.close()
            finally:
                remove_worker_directory(self.directory, complain)


def remove_worker_directory(directory: Path, complain: Callable[[str], None]) -> None:
    """Removes the directory of a worker."""
    try:
        remove(directory)
    except OSError as failure:  # the next start tries again
        complain(f"cannot remove the worker's directory: {failure}")


@dataclass(frozen=True, slots=True, eq=False)
class _Idle:
    """A worker that waits; until when, and since when, on the monotonic clock."""

    worker: Worker
    until: float
    since: float


class WarmWorkers:
    """At most `most` workers, those that were used last. `state` is `WorkplaceBackend.state`. Thread-safe; to be
    closed."""

    def __init__(self, state: Callable[[Task], str], most: int) -> None:
        self._state = state
        self._most = most
        self._changed = threading.Condition()
        self._idle: list[_Idle] = []
        self._over: list[Worker] = []
        self._versions: frozenset[str] | None = None
        self._closed = False
        self._thread: threading.Thread | None = None
        # The kernel ends a process with the thread that started it, so that must outlive every datum set.
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="warm-starter")

    def __len__(self) -> int:
        """The number of workers that wait."""
        with self._changed:
            return len(self._idle)

    def start(self, start: Callable[[], CommandProcess]) -> CommandProcess:
        """Runs `start` in a thread that ends with this object alone."""
        return self._starter.submit(start).result()

    def take(self, task: Task) -> tuple[Worker, float] | None:
        """A worker of this task that has waited, and for how many seconds; None if there is none that will do."""
        with self._changed:
            found = next((each for each in self._idle if each.worker.task == task), None)
            if found is None:
                return None
            self._idle.remove(found)
        if found.worker.session.waiting and found.worker.state == self._current(task):
            return found.worker, time.monotonic() - found.since
        self._end(found.worker)
        return None

    def keep(self, worker: Worker, note: Callable[[str], None]) -> bool:
        """Keeps a worker whose datum set is done; False if it has to end. `note` writes into the log of the set."""
        task = worker.task
        if task.warm is None or not worker.state or not worker.session.waiting:
            return False
        held = worker.session.held
        if held > task.warm.memory:
            note(
                f"user code is not kept for the next datum set: it holds {held / _MEBI:,.0f} MiB of memory, and the "
                f"pipeline allows {task.warm.memory / _MEBI:,.0f} MiB"
            )
            return False
        if worker.state != self._current(task):
            return False
        note(f"user code waits for the next datum set, for {task.warm.seconds} s at most")
        worker.session.detach()
        now = time.monotonic()
        with self._changed:
            if self._refused(task):
                return False
            self._idle.append(_Idle(worker, now + task.warm.seconds, now))
            if len(self._idle) > self._most:
                self._over.append(self._idle.pop(0).worker)
            if self._thread is None:
                self._thread = threading.Thread(target=self._attend, name="warm-workers", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return True

    def keep_versions(self, versions: Collection[str]) -> None:
        """As `LocalRunner.keep` says."""
        with self._changed:
            self._versions = frozenset(versions)
            self._dismiss(lambda idle: idle.worker.task.pod.spec_commit not in versions)

    def look(self) -> None:
        """Ends workers whose processes have read what has changed since."""
        with self._changed:
            waiting = list(self._idle)
        stale = [idle for idle in waiting if idle.worker.state != self._current(idle.worker.task)]
        with self._changed:
            self._dismiss(lambda idle: idle in stale)

    def close(self) -> None:
        """Ends all of them, and waits for that."""
        with self._changed:
            self._closed = True
            self._dismiss(lambda _: True)
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        self._starter.shutdown()

    def _refused(self, task: Task) -> bool:
        """Whether no worker of this task may be kept. To be called with the lock held."""
        gone = self._versions is not None and task.pod.spec_commit not in self._versions
        return self._closed or gone or any(each.worker.task == task for each in self._idle)

    def _current(self, task: Task) -> str:
        """The state of what processes of a task read now; "" if they cannot be kept any more."""
        try:
            return self._state(task)
        except NotReusable:
            return ""

    def _dismiss(self, wanted: Callable[[_Idle], bool]) -> None:
        """Has workers ended. To be called with the lock held."""
        over = [idle for idle in self._idle if wanted(idle)]
        if over:
            self._idle = [idle for idle in self._idle if idle not in over]
            self._over += [idle.worker for idle in over]
            self._changed.notify_all()

    def _attend(self) -> None:
        """Ends workers that are over until this object is closed."""
        while (over := self._due()) is not None:
            for worker in over:
                self._end(worker)

    def _due(self) -> list[Worker] | None:
        """Waits for workers that are over; None when this object is closed."""
        with self._changed:
            while True:
                self._dismiss(lambda idle: idle.until <= time.monotonic())
                if self._over or self._closed:
                    over, self._over = self._over, []
                    return over or None
                self._changed.wait(self._patience())

    def _patience(self) -> float | None:
        """Seconds until the next worker has waited too long."""
        return min((idle.until - time.monotonic() for idle in self._idle), default=None)

    def _end(self, worker: Worker) -> None:
        try:
            worker.close(_log.warning)
        except Exception:  # its output could not be passed on, and belongs to no datum set
            _log.exception("a worker of %s that was kept has not ended well", worker.task.pod.pipeline)
