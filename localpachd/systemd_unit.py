"""The unit with which systemd runs a server: its text from the options of the command line. Starts nothing."""

import getpass
import os
import sys
from collections.abc import Sequence
from pathlib import Path

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
# A start looks at all chunks, and changes a database of an older version.
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


def text(root: Path, options: Sequence[str]) -> str:
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
