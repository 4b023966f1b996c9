"""The import of Keras and its backend, without the chatter of native libraries on stderr, which is shown only if the
import fails, and without packages that no backbone uses.

TensorFlow's wheels complain at each start about CUDA libraries that are registered twice, before the level of their log
counts, and of a missing driver where there is no GPU.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from stages.backbone.backends import keras_backend

_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_TOLD = ("0", "1")  # messages and warnings
_DRIVER = Path("/proc/driver/nvidia")

_UNUSED = ("pandas", "sklearn")
"""Keras imports them if they are there, for data frames and for estimators: a third of the time of its own import."""

_DONE = b"\nimported\n"
_HOLD = f"""
import sys
text = sys.stdin.buffer.read()
if not text.endswith({_DONE!r}):
    sys.stderr.buffer.write(text)
"""


@contextmanager
def quiet() -> Iterator[None]:
    """Holds back what is written to stderr while Keras is imported, unless the environment's level of its log asks
    for messages or warnings. Without a level, sets that to errors, and where there is no GPU to none. What is held back
    is shown if the import fails, or if it ends the process. Packages that Keras can do without look missing to it,
    unless they are imported already.

    Raises StageError if Keras cannot have the backend that the environment chooses."""
    keras_backend.check(os.environ)
    missing = _Missing()
    sys.meta_path.insert(0, missing)
    try:
        with _held_back():
            yield
    finally:
        sys.meta_path.remove(missing)


class _Missing(MetaPathFinder):
    """Finds that the unused packages are missing. Only for the thread that makes it: others may need them meanwhile."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        # PyTorch asks for them before it imports them, and so would not bear an error.
        self._names = () if keras_backend.chosen(os.environ) == "torch" else _UNUSED

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in self._names and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{fullname} is not imported with Keras", name=fullname)
        return None


@contextmanager
def _held_back() -> Iterator[None]:
    level = os.environ.setdefault(_LEVEL, "2" if _DRIVER.exists() else "3")
    if level in _TOLD:
        yield
        return
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
