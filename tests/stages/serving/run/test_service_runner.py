"""The allocator of the service's process, in a process of its own."""

import subprocess
import sys

import pytest

_HELD = """
import sys
from pathlib import Path
import numpy as np
from stages.serving.run import service_runner

def own():
    (line,) = (each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith("RssAnon:"))
    return int(line.split()[1]) << 10

if sys.argv[1] == "settled":
    service_runner.configure_allocator()
for _ in range(3):
    large = np.ones(24 << 20, np.uint8)
    del large
before = own()
blocks = [np.ones(8 << 20, np.uint8) for _ in range(4)]
last = np.ones(64, np.uint8)
del blocks
print(own() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts memory as Linux does")
@pytest.mark.only_in_all
def test_large_blocks_go_back_to_the_system() -> None:
    held = {}
    for how in ("settled", "usual"):
        said = subprocess.run(
            [sys.executable, "-c", _HELD, how], capture_output=True, text=True, check=True, timeout=60
        )
        held[how] = int(said.stdout)
    assert held["settled"] < 4 << 20
    assert held["usual"] > held["settled"]
