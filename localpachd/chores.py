"""Chores: what must be done now and then for as long as the server runs. Knows none of them."""

import logging
import threading
from collections.abc import Callable, Mapping

_log = logging.getLogger(__name__)


class Chores:
    """A thread that does every chore, by name, again and again. One that fails is tried again with the next round."""

    def __init__(self, chores: Mapping[str, Callable[[], object]], seconds: float) -> None:
        self._chores = chores
        self._seconds = seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="chores")

    def start(self) -> None:
        """Begins; the first round comes after `seconds`."""
        self._thread.start()

    def stop(self) -> None:
        """Ends, after the chore that is being done."""
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
                except Exception:  # no chore may keep the others from being done
                    _log.exception("cannot %s; it is tried again in %.0f s", name, self._seconds)
                else:
                    _log.debug("%s: %s", name, done)
