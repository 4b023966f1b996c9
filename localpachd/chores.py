"""Chores: work that is repeated for as long as the server runs. Knows none of it."""

import logging
import threading
from collections.abc import Callable, Mapping

_log = logging.getLogger(__name__)


class ChoreThread:
    """A thread that repeats every chore. One that fails is retried in the next round."""

    def __init__(self, chores: Mapping[str, Callable[[], object]], seconds: float) -> None:
        self._chores = chores
        self._seconds = seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="chores")

    def start(self) -> None:
        """Starts the thread; the first round begins after `seconds`."""
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _loop(self) -> None:
        while not self._stopped.wait(self._seconds):
            for name, chore in self._chores.items():
                if self._stopped.is_set():
                    return
                try:
                    done = chore()
                except Exception:  # a failing chore must not stop the others
                    _log.exception("cannot %s; retrying in %.0f s", name, self._seconds)
                else:
                    _log.debug("%s: %s", name, done)
