"""systemd: the unit with which it runs a server, and what it is told of the process: ready, stopping, alive.

The protocol is that of sd_notify(3): lines in a datagram to the socket that the environment names. Without systemd
nothing is told.
"""

import contextlib
import getpass
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_log = logging.getLogger(__name__)

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,=+@")

_UNIT = """\
[Unit]
Description=localpachd on {root}
RequiresMountsFor={mounts}
After=network.target
StartLimitIntervalSec=600
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
WorkingDirectory={directory}
{user}UMask=0077
# A start looks at all chunks.
TimeoutStartSec=infinity
# The server ends within 10 seconds, and its workers with it.
TimeoutStopSec=15
KillMode=mixed
Restart=on-failure
RestartSec=5
WatchdogSec=120
# A worker that takes too much memory is killed alone; its datum fails.
OOMPolicy=continue
LimitNOFILE=65536
# Workers get their /pfs by namespaces and mounts of their own, and GPUs by device files, so these are left to them:
# RestrictNamespaces, SystemCallFilter, PrivateDevices, ProtectKernelTunables, ProtectProc, and PrivateTmp.
NoNewPrivileges=yes
ProtectSystem=full
RestrictSUIDSGID=yes
RestrictRealtime=yes
LockPersonality=yes
SystemCallArchitectures=native
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK

[Install]
WantedBy=multi-user.target
"""


def unit(root: Path, options: Sequence[str]) -> str:
    """The unit of a server on `root` with these options, as this user, from this directory and with this Python."""
    command = [sys.executable, "-P", "-m", "localpachd", *options]
    return _UNIT.format(
        root=_escaped(str(root)),
        mounts=_quoted(str(root)),
        command=" ".join(map(_quoted, command)).replace("$", "$$"),
        directory=_escaped(str(Path.cwd())),
        user=f"User={getpass.getuser()}\n" if os.geteuid() != 0 else "",
    )


def _quoted(word: str) -> str:
    """A word of a list, as systemd.syntax(7) has it."""
    if word and set(word) <= _PLAIN:
        return word
    inner = _escaped(word).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inner}"'


def _escaped(value: str) -> str:
    return value.replace("%", "%%")


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
