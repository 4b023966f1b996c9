"""The recorded syncs of `tests.localpachd.recorded_disk`: a cut leaves what was synced, and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.localpachd import recorded_disk

pytestmark = pytest.mark.skipif(bool(recorded_disk.obstacle()), reason=recorded_disk.obstacle())

_PROGRAM = """
import os, sys
def write(name, data, sync):
    with open(name, "wb") as file:
        file.write(data)
        file.flush()
        sync(file.fileno())
def sync(name):
    handle = os.open(name, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)
os.chdir(sys.argv[1])
os.mkdir("synced")
os.mkdir("unsynced")
for each in ("kept", "changed", "renamed", "deleted", "removed"):
    write(f"synced/{each}", each.encode(), os.fdatasync)
write("synced/empty", b"never synced", abs)
write("unsynced/file", b"synced, but not its name", os.fsync)
os.unlink("synced/removed")
sync("synced")
sync(".")
write("synced/later", b"without its name", os.fsync)
with open("synced/changed", "ab") as file:
    file.write(b", and not synced")
os.rename("synced/renamed", "synced/elsewhere")
os.unlink("synced/deleted")
write("synced/again", b"perhaps with the inode of the deleted file", os.fsync)
"""


def test_a_cut_leaves_what_was_synced(tmp_path: Path) -> None:
    with recorded_disk.disk(tmp_path) as disk:
        subprocess.run([sys.executable, "-c", _PROGRAM, disk.root], env=os.environ | disk.variables, check=True)
        after = disk.cut()
    assert sorted(each.name for each in after.iterdir()) == ["synced", "unsynced"]
    assert list((after / "unsynced").iterdir()) == []
    found = {each.name: each.read_bytes() for each in (after / "synced").iterdir()}
    kept = ("kept", "changed", "renamed", "deleted")
    assert found == {**{name: name.encode() for name in kept}, "empty": b""}
