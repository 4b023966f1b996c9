"""The program: reads the command line and runs the server until a signal stops it. Builds nothing itself."""

import ctypes
import logging
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Sequence

from localpachd import maintenance, server_options, systemd
from localpachd.errors import PachError
from localpachd.server import Server
from localpachd.systemd import SystemdNotifier

_UNIT = "unit"
_LONGEST_STOP = 8.0
"""Seconds that an orderly end may take."""

# mallopt's parameters, from glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8

_ARENAS = 2
"""Heaps. By default there are eight for each core, and each keeps what its threads have freed: a server under load grew
for as long as it was watched. Python's lock lets one thread allocate at a time, so that two are enough."""

_LARGE = 1 << 20
"""Bytes of a block that goes back to the system when it is freed, whatever was freed before."""

_FREE_AT_END = 8 << 20
"""Bytes that may stay free at the end of a heap."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves until SIGTERM or SIGINT, does the maintenance that is asked for, or prints a unit of systemd; returns the
    exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] in maintenance.COMMANDS:
        return maintenance.main(arguments)
    if arguments and arguments[0] == _UNIT:
        print(systemd.unit(server_options.parse(arguments[1:]).root, arguments[1:]), end="")
        return 0
    options = server_options.parse(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    stop = _Stop()
    _return_freed_memory()
    try:
        server = Server(options)
        server.start()
    except (PachError, OSError, ValueError) as error:
        print(f"localpachd: {error}", file=sys.stderr)
        return 1
    # In one piece: `lookalike up` reads the lines that it needs, and leaves.
    metrics = f"\nlocalpachd: metrics at {server.metrics_address}" if server.metrics_address else ""
    print(f"localpachd: listening on {server.address}{metrics}", flush=True)
    manager = SystemdNotifier()
    manager.ready(f"listening on {server.address}", server.check)
    stop.wait()
    manager.stopping()
    try:
        server.stop()
    except PachError as error:
        print(f"localpachd: {error}", file=sys.stderr)
        return 1
    return 0


class _Stop:
    """SIGTERM and SIGINT, as noticed by a thread of its own: the main thread may be busy with the start, or wait for a
    disk. During the start, and when an orderly end takes too long, the process ends as by a cut of power, which loses
    nothing."""

    def __init__(self) -> None:
        self._told = threading.Event()
        self._started = threading.Event()
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        threading.Thread(target=self._watch, args=(reader,), name="signals", daemon=True).start()

    def wait(self) -> None:
        """Blocks until a signal has come; then a second one ends the process at once."""
        self._started.set()
        self._told.wait()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)

    def _watch(self, reader: int) -> None:
        os.read(reader, 1)
        self._told.set()
        if self._started.is_set():
            time.sleep(_LONGEST_STOP)
            logging.getLogger(__name__).warning("stopping takes more than %.0f s: ending at once", _LONGEST_STOP)
        os._exit(0)


def _return_freed_memory() -> None:
    """Makes freed memory go back to the system, for the whole process; does nothing without glibc."""
    if platform.libc_ver()[0] != "glibc":
        return
    mallopt = ctypes.CDLL(None).mallopt
    for parameter, value in ((_ARENA_MAX, _ARENAS), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _FREE_AT_END)):
        mallopt(parameter, value)
