"""Ctrl-C pressed where Python drops its exception."""

import subprocess
import sys

PROGRAM = """
import os, signal
from pipelines.commands import interrupts

class Finalised:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):  # the handler runs in here
            pass

interrupts.listen()
interrupts.check()
Finalised()
print("went on", flush=True)
try:
    interrupts.check()
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_in_a_finaliser_is_raised_by_the_next_check() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "went on\ninterrupted\n"
    assert done.stderr == ""
