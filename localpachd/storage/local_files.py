"""Files of this machine that URLs name, below the directories that a server may reach. Knows no URL's form.

Paths are checked without their links and then opened step by step, following none: a link that appears in between is an
error, and leads nowhere else.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from localpachd import durable_files
from localpachd.storage.url_reach import UrlReach

_BLOCK = 1 << 20
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def read(path: Path, url: str, reach: UrlReach) -> Iterator[bytes]:
    """The bytes of a file. Raises FailedPrecondition for one that may not be reached, and OSError."""
    allowed, real = reach.place(path, url)
    with _parent(allowed, real, make=False) as directory:
        # A pipe without a writer would be waited for.
        handle = os.open(real.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
    with os.fdopen(handle, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{path} is not a file")
        while piece := file.read(_BLOCK):
            yield piece


def below(path: Path, url: str, reach: UrlReach) -> Iterator[Path]:
    """The files below a directory, sorted; links to files are among them, links to directories are not followed."""
    _, real = reach.place(path, url)
    found = (Path(place, name) for place, _, names in os.walk(real) for name in names)
    yield from sorted(each for each in found if each.is_file())


def write(target: Path, pieces: Iterable[bytes], url: str, reach: UrlReach) -> None:
    """Writes a file, whole or not at all, and the directories above it. Raises as `read` does."""
    allowed, real = reach.place(target, url)
    with _parent(allowed, real, make=True) as directory:
        part = f".{uuid4().hex}.part"
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=directory)
        try:
            with os.fdopen(handle, "wb", buffering=0) as file:
                for piece in pieces:
                    durable_files.write_all(file.fileno(), piece)
                os.fsync(file.fileno())
            os.rename(part, real.name, src_dir_fd=directory, dst_dir_fd=directory)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(part, dir_fd=directory)


@contextmanager
def _parent(allowed: Path, real: Path, make: bool) -> Iterator[int]:
    """The directory in which a path lies, opened from an allowed one downwards."""
    if real == allowed:
        raise IsADirectoryError(f"{real} is a directory")
    handle = os.open(allowed, _DIRECTORY)
    try:
        for name in real.parent.relative_to(allowed).parts:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=handle)
            further = os.open(name, _DIRECTORY, dir_fd=handle)
            os.close(handle)
            handle = further
        yield handle
    finally:
        os.close(handle)
