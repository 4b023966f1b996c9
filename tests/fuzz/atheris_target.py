"""One target under atheris, which counts the branches that each input takes and changes those that took new ones.

`tests.fuzz` runs it, with atheris on the path: MODULE TARGET, and libFuzzer's options.
"""

import ctypes
import logging
import os
import resource
import sys
import warnings
from pathlib import Path

import atheris

from tests.fuzz import registry

_ADDRESSES = 8 << 30
"""Bytes of memory that the process may ask for: an input that states a larger size fails at once."""


def _leave(_: object) -> None:
    # Of a process that a larger one has started, libFuzzer's own figure is that of the larger one.
    status = Path("/proc/self/status").read_text()
    peak = next((line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")), "0")
    os.write(2, f"stat::memory_mb: {int(peak) >> 10}\n".encode())
    os._exit(0)


_LEAVE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_leave)


def main() -> None:
    module, name, *options = sys.argv[1:]
    packages = registry.PACKAGES[module]
    for each in packages:  # atheris has imported some of the standard library's
        sys.modules.pop(each, None)
    with atheris.instrument_imports(include=list(packages)):
        target = next(each for each in registry.targets(module) if each.name == name)
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    for seed in target.seeds():
        target.run(seed)
    # libFuzzer ends by exit(), in which Arrow sometimes waits for its threads for ever: this is done first there, since
    # Arrow has started its threads by now.
    ctypes.CDLL(None).__cxa_atexit(_LEAVE, None, None)
    atheris.Setup([name, *options], target.run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
