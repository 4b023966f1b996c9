"""The files of this machine that links out of `/pfs` lead to. Knows no datums.

The server, which reads them, sees more than the process that made the link: its own files, the kernel's about itself,
the machine's `/tmp`, and where it is root everybody's files.
"""

import errno
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from localpachd.worker.machine.machine_view import MachineView


@dataclass(frozen=True, slots=True)
class MachineFiles:
    """The linked files of a process of this machine: the files themselves, as far as it can see them. `temporary` is
    the directory that it has as `/tmp`, None where it shares the machine's; `user` are setpriv's options for its user,
    if that is not the server's."""

    view: MachineView
    temporary: Path | None
    user: Sequence[str] = ()

    def mode(self, path: str) -> int:
        """As `linked_files.LinkedFiles` says."""
        return self._here(path, whole=False).lstat().st_mode

    def target(self, path: str) -> str:
        """As `linked_files.LinkedFiles` says."""
        return str(self._here(path, whole=False).readlink())

    def fetch(self, path: str) -> Path:
        """As `linked_files.LinkedFiles` says. Raises PermissionError for what the process's user may not read."""
        found = self._here(path, whole=True)
        if self.user:
            search = ("find", "-H", str(found), "!", "-readable", "-print", "-quit")
            asked = subprocess.run(
                ("setpriv", *self.user, "--", *search), capture_output=True, stdin=subprocess.DEVNULL, check=False
            )
            if asked.returncode or asked.stdout:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return found

    def _here(self, path: str, whole: bool) -> Path:
        return self.view.here(Path(path), self.temporary, whole)
