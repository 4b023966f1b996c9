"""A thread that calls a function after every change and after a time limit. Knows nothing of the function."""

import logging
import threading
from collections.abc import Callable

from localpachd.pfs.changes import EVERYTHING, ChangeNotifier, TopicChanges

_log = logging.getLogger(__name__)


class ChangeLoop:
    """Calls `look` with each change, and first with everything, until it is stopped. `look` returns the seconds after
    which it is called even without a change, None for no limit. When it raises, the loop logs that and calls it with
    everything after at most `pause` seconds."""

    def __init__(
        self, name: str, changes: ChangeNotifier, look: Callable[[TopicChanges], float | None], pause: float
    ) -> None:
        self._name = name
        self._changes = changes
        self._look = look
        self._pause = pause
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._changes.wake()
        if self._thread.ident is not None:
            self._thread.join()

    @property
    def stopping(self) -> bool:
        return self._stopping

    def _run(self) -> None:
        with self._changes.feed() as feed:
            changed = EVERYTHING
            while not self._stopping:
                wait: float | None
                again = False
                try:
                    wait = self._look(changed)
                except Exception:
                    _log.exception("the %s failed; trying again in %.0f s", self._name, self._pause)
                    wait, again = self._pause, True
                changed = feed.wait(wait)
                if again:
                    changed = EVERYTHING
