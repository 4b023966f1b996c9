"""The lock on a root directory, which one process at a time may use. Knows nothing else in it."""

import fcntl
import os
from pathlib import Path

from localpachd import durable_files
from localpachd.errors import FailedPrecondition


class RootLock:
    """Lets one process at a time use a root directory. The kernel releases the lock when the process ends. Raises
    FailedPrecondition while another one has it."""

    def __init__(self, root: Path) -> None:
        durable_files.make_directory(root, 0o700)
        self._file = (root / "lock").open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.seek(0)
            holder = self._file.read().strip()
            self._file.close()
            raise FailedPrecondition(
                f"{root} is in use by another localpachd (process {holder or 'unknown'}): stop it first, or use "
                "another --root"
            ) from None
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n")
        self._file.flush()

    def release(self) -> None:
        """Lets another process use the root."""
        self._file.close()
