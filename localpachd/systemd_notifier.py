"""What systemd is told about the process: that it is ready, stops, and lives. Without systemd it is told nothing.

The protocol is that of sd_notify(3): lines in a datagram to the socket that the environment names.
"""

import contextlib
import logging
import os
import socket
import threading
from collections.abc import Callable, Mapping

_log = logging.getLogger(__name__)


class SystemdNotifier:
    """Tells the manager that `environment` names, if any. A manager that has gone is no failure."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        self._seconds = _watchdog(environment) if self._address else 0.0
        self._stopped = threading.Event()

    def ready(self, status: str, alive: Callable[[], None]) -> None:
        """Says that the server answers. If the manager wants signs of life, sends one twice in its time for as long as
        `alive` neither raises nor hangs."""
        self._tell(f"READY=1\nSTATUS={status}")
        if self._seconds:
            threading.Thread(target=self._live, args=(alive,), name="watchdog", daemon=True).start()

    def stopping(self) -> None:
        """Says that the server is about to end."""
        self._stopped.set()
        self._tell("STOPPING=1")

    def _live(self, alive: Callable[[], None]) -> None:
        while not self._stopped.wait(self._seconds / 2):
            try:
                alive()
            except Exception as error:  # the manager restarts a server that stays silent
                _log.error("no sign of life: %s", error)
            else:
                self._tell("WATCHDOG=1")

    def _tell(self, text: str) -> None:
        if not self._address:
            return
        # An address that begins with @ has no file.
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(text.encode(), address)


def _watchdog(environment: Mapping[str, str]) -> float:
    """Seconds within which the manager wants a sign of life of this process; 0 for none."""
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    given = environment.get("WATCHDOG_USEC", "")
    return int(given) / 1e6 if given.isdecimal() else 0.0
