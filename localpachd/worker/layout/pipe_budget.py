"""The number of pipes that this process may have open at once. Does not know their purpose."""

import contextlib
import resource
import threading

_OPEN_FILES = 1 << 16


class PipeBudget:
    """The number of pipes that all datums together may hold open: half of the files that this process may have open.

    Making a budget raises the process's limit of open files as far as is sensible and allowed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._left = (_OPEN_FILES if soft == resource.RLIM_INFINITY else soft) // 2

    def take(self) -> bool:
        """Takes one pipe out of the budget; False if it is used up."""
        with self._lock:
            if self._left == 0:
                return False
            self._left -= 1
            return True

    def give_back(self, count: int) -> None:
        """Returns `count` closed pipes to the budget."""
        with self._lock:
            self._left += count
