"""Imports without the chatter of native libraries on stderr, which is shown only if the import fails.

TensorFlow's wheels complain at each start about CUDA libraries that are registered twice, before the level of their log
counts, and of a missing driver where there is no GPU.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_DRIVER = Path("/proc/driver/nvidia")

_DONE = b"\nimported\n"
_HOLD = f"""
import sys
text = sys.stdin.buffer.read()
if not text.endswith({_DONE!r}):
    sys.stderr.buffer.write(text)
"""


@contextmanager
def tensorflow() -> Iterator[None]:
    """Holds back what is written to stderr while TensorFlow is imported, and sets the level of its log, unless the
    environment does: to errors, and where there is no GPU to none. What is held back is shown if the import fails, or
    if it ends the process."""
    if _LEVEL in os.environ:
        yield
        return
    os.environ[_LEVEL] = "2" if _DRIVER.exists() else "3"
    sys.stderr.flush()
    before = os.dup(2)
    # Another process holds it back, since a library that cannot run on this processor aborts this one.
    holder = subprocess.Popen([sys.executable, "-I", "-S", "-c", _HOLD], stdin=subprocess.PIPE)
    assert holder.stdin is not None
    try:
        os.dup2(holder.stdin.fileno(), 2)
        yield
        sys.stderr.flush()
        os.write(2, _DONE)
    finally:
        os.dup2(before, 2)
        os.close(before)
        holder.stdin.close()
        holder.wait()
