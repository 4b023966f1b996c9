"""Files that lie in memory, and so count as memory of the processes that made them: memfds, the file systems that only
they see, such as their `/dev/shm`, and their directories where this machine has these in memory.

A file is named by its device and its number, a whole file system by its device and 0.
"""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

FileKey = tuple[int, int]

_MAPPING = re.compile(
    r"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ ([0-9a-f]+):([0-9a-f]+) ([1-9]\d*) .*\n(?:[A-Z].*\n)*?Pss: +(\d+) kB\n"
    r"(?:[A-Z].*\n)*?Anonymous: +(\d+) kB",
    re.MULTILINE,
)


def sizes(processes: Sequence[int], directories: Sequence[Path]) -> Mapping[FileKey, int]:
    """The bytes of each file that processes hold in memory and of each file system that only they see, and of the files
    in these directories."""
    found = dict[FileKey, int]()
    for process in processes:
        with contextlib.suppress(OSError):  # it has ended
            found.update(_memfds(process))
    found.update(_file_systems(processes))
    for directory in directories:
        found.update(_files(directory))
    return found


def mapped(processes: Sequence[int], files: Mapping[FileKey, int]) -> int:
    """The bytes of these files that processes have mapped, those that are shared once."""
    total = 0
    for process in processes if files else ():
        with contextlib.suppress(OSError):
            for major, minor, number, share, own in _MAPPING.findall(Path(f"/proc/{process}/smaps").read_text()):
                device = os.makedev(int(major, 16), int(minor, 16))
                if (device, int(number)) in files or (device, 0) in files:
                    total += max(0, int(share) - int(own))
    return total << 10


def is_in_memory(path: Path) -> bool:
    """Whether this machine has a directory in memory."""
    return path.stat().st_dev in {device for device, _ in _mounted("self")}


def _memfds(process: int) -> Iterator[tuple[FileKey, int]]:
    for name in os.listdir(f"/proc/{process}/fd"):  # noqa: PTH208 (this runs ten times a second)
        with contextlib.suppress(OSError):
            path = f"/proc/{process}/fd/{name}"
            if os.readlink(path).startswith("/memfd:"):  # noqa: PTH115
                found = os.stat(path)  # noqa: PTH116
                yield (found.st_dev, found.st_ino), found.st_blocks << 9


def _file_systems(processes: Sequence[int]) -> Iterator[tuple[FileKey, int]]:
    known = {device for device, _ in _mounted("self")}
    views = dict[str, int]()
    for process in processes:
        with contextlib.suppress(OSError):
            views.setdefault(os.readlink(f"/proc/{process}/ns/mnt"), process)  # noqa: PTH115
    for process in views.values():
        for device, place in _mounted(process):
            if device not in known:
                with contextlib.suppress(OSError):
                    found = os.statvfs(f"/proc/{process}/root{place}")
                    yield (device, 0), (found.f_blocks - found.f_bfree) * found.f_frsize


def _mounted(process: int | str) -> Iterator[tuple[int, str]]:
    """The devices of the file systems in memory that a process sees, and their places; none if it has ended."""
    lines = list[str]()
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{process}/mountinfo").read_text().splitlines()
    for line in lines:
        fields, _, kind = line.partition(" - ")
        if kind.startswith("tmpfs "):
            major, minor = fields.split()[2].split(":")
            place = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields.split()[4])
            yield os.makedev(int(major), int(minor)), place


def _files(directory: Path) -> Iterator[tuple[FileKey, int]]:
    for above, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):
                found = os.lstat(os.path.join(above, name))  # noqa: PTH118
                yield (found.st_dev, found.st_ino), found.st_blocks << 9
