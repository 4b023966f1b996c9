"""The process that writes a commit, as the commit's description names it, and whether that process is gone.

A process is told from a later one with the same number by the time of its start, and from those of other machines and
containers by a mark of the machine. Knows no server.
"""

import getpass
import hashlib
import os
import re
import socket
from dataclasses import dataclass
from pathlib import Path

_PROCESSES = Path("/proc")
_BOOT = _PROCESSES / "sys" / "kernel" / "random" / "boot_id"
_UNKNOWN = "-"
_TEXT = re.compile(r"written with lookalike by (.+?), process (\d+)/(\d+) of (-|[0-9a-f]{12})(?: (.*))?\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CommitOwner:
    """A process: its user and host in words, its number, its start in the system's ticks, and the mark of its machine,
    "" where the system gives none."""

    user: str
    process: int
    started: int
    machine: str

    def __str__(self) -> str:
        """The description of a commit that this process writes."""
        machine = self.machine or _UNKNOWN
        return f"written with lookalike by {self.user}, process {self.process}/{self.started} of {machine}"

    @property
    def gone(self) -> bool:
        """Whether the process has certainly ended: False for one of another machine, which cannot be seen."""
        return bool(self.machine) and self.machine == _machine() and _start(self.process) != self.started


def current_process() -> CommitOwner:
    """This process."""
    return CommitOwner(f"{_user()}@{socket.gethostname()}", os.getpid(), _start(os.getpid()) or 0, _machine())


def read(description: str) -> CommitOwner | None:
    """The owner that a commit's description names first; None for a commit that lookalike did not open."""
    found = _TEXT.fullmatch(description)
    return (
        CommitOwner(found[1], int(found[2]), int(found[3]), "" if found[4] == _UNKNOWN else found[4]) if found else None
    )


def without_owner(description: str) -> str:
    """A commit's description without its owner."""
    found = _TEXT.fullmatch(description)
    return (found[5] or "") if found else description


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user need not have a name
        return str(os.getuid())


def _machine() -> str:
    """A mark that processes share if they can see each other: since the machine's start, and in one container."""
    try:
        seen = _BOOT.read_text() + str((_PROCESSES / "self" / "ns" / "pid").readlink())
    except OSError:
        return ""
    return hashlib.sha256(seen.encode()).hexdigest()[:12]


def _start(process: int) -> int | None:
    """The start of a process that runs, in ticks; None if there is none."""
    try:
        fields = (_PROCESSES / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])
