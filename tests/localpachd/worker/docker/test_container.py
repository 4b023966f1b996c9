"""The pause binary: an executable that does nothing until it is killed."""

import os
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from localpachd.worker.docker import container
from tests.conditions import until


@pytest.mark.parametrize("architecture", ["amd64", "aarch64"])
def test_the_pause_binary_is_an_executable(tmp_path: Path, architecture: str) -> None:
    container.write_pause_binary(tmp_path / "pause", architecture)
    assert (tmp_path / "pause").read_bytes()[:4] == b"\x7fELF"
    assert stat.S_IMODE((tmp_path / "pause").stat().st_mode) == 0o755
    if not container.is_supported(os.uname().machine) or (architecture == "amd64") != (os.uname().machine == "x86_64"):
        return
    process = subprocess.Popen([tmp_path / "pause"])
    until(lambda: "S" in Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0])
    process.terminate()
    assert process.wait(30) == -signal.SIGTERM
    assert not container.is_supported("s390x")
