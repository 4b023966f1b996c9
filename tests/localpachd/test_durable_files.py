"""Files that begin to be written: they stay the same, and only failures are errors."""

import errno
import os
import sys
from pathlib import Path

import pytest

from localpachd import durable_files


def test_a_file_that_begins_to_be_written_is_the_same(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w+b") as file:
        file.write(bytes(range(256)) * 4096)
        file.flush()
        durable_files.begin(file.fileno())
        file.write(b"more")
        durable_files.begin(file.fileno())
    durable_files.sync(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == bytes(range(256)) * 4096 + b"more"


def test_what_cannot_begin_is_left_to_the_sync() -> None:
    read, write = os.pipe()
    try:
        durable_files.begin(write)
    finally:
        os.close(read)
        os.close(write)


@pytest.mark.skipif(sys.platform != "linux", reason="begins only on Linux")
def test_a_failure_to_begin_is_raised(tmp_path: Path) -> None:
    handle = os.open(tmp_path, os.O_RDONLY)
    os.close(handle)
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        durable_files.begin(handle)
