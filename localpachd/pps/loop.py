"""A thread that looks again after every change, and when it is time to. Decides nothing itself."""

import logging
import threading
from collections.abc import Callable

from localpachd.pfs.changes import EVERYTHING, Changed, Changes

_log = logging.getLogger(__name__)


class Loop:
    """Calls `look` with what has changed, at first with everything, again and again until it is stopped. `look` returns
    the seconds after which it wants to be called even without a change, None for never. When it raises, it is called
    again after `pause` seconds, with everything: the loop must outlive whatever one look meets."""

    def __init__(self, name: str, changes: Changes, look: Callable[[Changed], float | None], pause: float) -> None:
        self._name = name
        self._changes = changes
        self._look = look
        self._pause = pause
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the loop and waits for the look that is being taken."""
        self._stopping = True
        self._changes.wake()
        if self._thread.ident is not None:
            self._thread.join()

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called."""
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
                    _log.exception("the %s tries again in %.0f s", self._name, self._pause)
                    wait, again = self._pause, True
                changed = feed.wait(wait)
                if again:
                    changed = EVERYTHING
