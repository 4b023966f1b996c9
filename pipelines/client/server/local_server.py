"""localpachd on this machine: started in the background, found again, stopped, and made known to pachctl.

Knows localpachd only as a program to start; its API is reached as on any cluster.
"""

import base64
import contextlib
import fcntl
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pipelines.client.server.pachctl_config import config_path, read_config, write_config
from pipelines.errors import LookalikeError

CONTEXT = "localpachd"
"""The name of pachctl's context for the local server."""

PORT = 30650
"""The usual port of Pachyderm."""

_SHORT = 1 << 20
"""A disk with fewer free bytes counts as full."""

_NAME = ".lookalike"
_STATE = "pachd"
"""The directory of localpachd's own state, below the root."""

_TOKEN_FILE, _CERTIFICATE = "--token-file", "--tls-cert"
"""The options of localpachd that name files of access."""

_FIRST_LINE = "localpachd: listening on "
_SECOND_LINE = "localpachd: metrics at "
_METRICS = "--metrics-port"
_STOPS_WITHIN = 30.0
"""Seconds."""


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A localpachd that was started on `root`; `previous_context` was pachctl's active context before. `metrics` is the
    URL of its metrics, "" without."""

    root: str
    address: str
    pid: int
    previous_context: str
    metrics: str = ""


@dataclass(frozen=True, slots=True)
class AccessFiles:
    """The files with the token that a server asks for, and with its certificate and those that this was issued with."""

    token: Path | None = None
    certificate: Path | None = None

    def context(self) -> dict[str, str]:
        """What a context of pachctl holds of them. Raises LookalikeError if they cannot be read."""
        try:
            token = {"session_token": self.token.read_text().strip()} if self.token else {}
            trusted = base64.b64encode(self.certificate.read_bytes()).decode() if self.certificate else ""
        except (OSError, UnicodeDecodeError) as error:
            raise LookalikeError(f"cannot read the token or the certificate of the server: {error}") from error
        return token | ({"server_cas": trusted} if trusted else {})


def default_root(environment: Mapping[str, str] = os.environ) -> Path:
    """The directory of the local server's state: that of the library of this directory, else .lookalike in it."""
    return library(environment) or Path(_NAME)


def is_default(root: Path) -> bool:
    """Whether the library of a root is found from the directory around it."""
    return root.name == _NAME


def library(environment: Mapping[str, str] = os.environ) -> Path | None:
    """The root of the library to which the working directory belongs: $LOOKALIKE_ROOT, else the .lookalike with a
    server's state in the nearest directory that has one, from the working directory upwards."""
    named = environment.get("LOOKALIKE_ROOT")
    if named:
        return Path(named)
    here = Path.cwd()
    return next((each / _NAME for each in (here, *here.parents) if has_state(each / _NAME)), None)


def has_state(root: Path) -> bool:
    """Whether a server has run on a root."""
    return (root / _STATE).is_dir()


def running(root: Path) -> LocalServer | None:
    """The server that `up` started on this root, if it still runs."""
    server = _recorded(root.resolve())
    return server if server is not None and _runs(server) else None


def up(
    root: Path, port: int | None = None, options: Sequence[str] = (), access: AccessFiles | None = None
) -> tuple[LocalServer, bool]:
    """Starts localpachd on a root unless it runs there already, and makes it pachctl's active context, with its access.
    The library keeps its port, so that addresses and contexts that others have noted stay right; without a port (None)
    that is the one it had, and of a new library the usual one, or a free one (0) where that is in use.

    Returns it and whether this call started it. Raises LookalikeError if it does not start.
    """
    root = root.resolve()
    recorded = _recorded(root)
    server = running(root)
    fresh = server is None
    credentials: Mapping[str, str] = {}
    if server is None:
        root.mkdir(parents=True, exist_ok=True)
        credentials = access.context() if access else {}
        address, metrics, pid = _start(root, _usual_port(root) if port is None else port, options)
        _options_file(root).write_text(json.dumps([*options]))
        _port_file(root).write_text(f"{address.rpartition(':')[2]}\n")
        server = LocalServer(str(root), address, pid, recorded.previous_context if recorded else "", metrics)
    previous = _enter_context(server.address, credentials if fresh else None)
    server = replace(server, previous_context=previous or server.previous_context)
    _record(root).write_text(json.dumps(asdict(server), indent=2) + "\n")
    return server, fresh


def restart(root: Path) -> LocalServer:
    """The server of the library in a root, started as it was the last time unless it runs."""
    root = root.resolve()
    with (root / "starting").open("w") as lock:  # several commands may find it stopped
        fcntl.flock(lock, fcntl.LOCK_EX)
        recorded = _options_file(root)
        options: list[str] = json.loads(recorded.read_text()) if recorded.exists() else []
        given = dict(itertools.pairwise(options))
        files = (Path(given[name]) if name in given else None for name in (_TOKEN_FILE, _CERTIFICATE))
        return up(root, options=options, access=AccessFiles(*files))[0]


def down(root: Path) -> LocalServer | None:
    """Stops the server of a root, waits until it has exited, and restores pachctl's context. None if none runs."""
    root = root.resolve()
    server = running(root)
    if server is None:
        return None
    os.kill(server.pid, signal.SIGTERM)
    give_up = time.monotonic() + _STOPS_WITHIN
    while _runs(server):
        if time.monotonic() > give_up:
            raise LookalikeError(
                f"localpachd (process {server.pid}) has not stopped within {_STOPS_WITHIN:.0f} s; see {log_path(root)}"
            )
        time.sleep(0.05)
    _record(root).unlink(missing_ok=True)
    _leave_context(server)
    return server


def overridden(server: LocalServer, environment: Mapping[str, str] = os.environ) -> list[str]:
    """Notes on the variables that point lookalike and pachctl to a server other than this one."""
    notes = []
    address, context = environment.get("PACHD_ADDRESS"), environment.get("PACH_CONTEXT")
    if address and address not in (server.address, server.address.removeprefix("grpc://")):
        notes.append(f"note: PACHD_ADDRESS is {address}: unset it, or lookalike and pachctl will use that server")
    elif context and context != CONTEXT and not address:
        notes.append(f"note: PACH_CONTEXT is {context}: unset it, or lookalike and pachctl will not use this server")
    return notes


def log_path(root: Path) -> Path:
    """The log of the server of a root."""
    return root / "localpachd.log"


def _usual_port(root: Path) -> int:
    try:
        return int(_port_file(root).read_text())
    except (OSError, ValueError):
        pass
    with contextlib.suppress(OSError), socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", PORT))
        return PORT
    return 0


def _options_file(root: Path) -> Path:
    return root / "options.json"


def _port_file(root: Path) -> Path:
    return root / "port"


def _record(root: Path) -> Path:
    return root / "server.json"


def _recorded(root: Path) -> LocalServer | None:
    try:
        server = LocalServer(**json.loads(_record(root).read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return server if server.root == str(root) else None


def _command(root: str) -> list[str]:
    # -P: a folder named localpachd in the current directory must not be imported instead of ours.
    return ["-P", "-m", "localpachd", "--root", str(Path(root) / _STATE)]


def _start(root: Path, port: int, options: Sequence[str]) -> tuple[str, str, int]:
    """The addresses of the server and of its metrics, and its process."""
    command = [sys.executable, *_command(str(root)), "--port", str(port), *options]
    with log_path(root).open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True, text=True
        )
    assert process.stdout is not None
    try:
        with process.stdout:
            line = process.stdout.readline().strip()
            shown = _METRICS in options and line.startswith(_FIRST_LINE)
            metrics = process.stdout.readline().strip().removeprefix(_SECOND_LINE) if shown else ""
    except KeyboardInterrupt:  # nobody would know the server
        process.kill()
        raise
    if not line.startswith(_FIRST_LINE):
        process.kill()
        process.wait()
        said = line or _no_space(root) or _last_line(log_path(root)) or "it printed no message"
        raise LookalikeError(f"localpachd did not start: {said.removeprefix('localpachd: ')}")
    return line.removeprefix(_FIRST_LINE), metrics, process.pid


def _no_space(root: Path) -> str:
    """The reason of a failure on a full disk, where the log has no room for it, either; "" on any other."""
    full = shutil.disk_usage(root).free < _SHORT
    return f"no space left on the disk of {root}: free some" if full else ""


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    return lines[-1] if lines else ""


def _runs(server: LocalServer) -> bool:
    """Whether the process runs and is the one that was started: process ids are reused."""
    ours = " ".join(_command(server.root))
    processes = Path("/proc")
    if not (processes / "self").exists():
        listed = subprocess.run(["ps", "-o", "command=", "-p", str(server.pid)], capture_output=True, text=True)
        return ours in listed.stdout
    process = processes / str(server.pid)
    try:
        state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        arguments = os.fsdecode((process / "cmdline").read_bytes()).split("\0")
    except OSError:
        return False
    return state != "Z" and ours in " ".join(arguments)


def _enter_context(address: str, credentials: Mapping[str, str] | None) -> str:
    """Makes the local server, with these credentials, pachctl's active context; returns the name of the previous one.
    The context of a server that was running already (None) keeps what pachctl has added to it, such as a project."""
    path = config_path(os.environ)
    config = read_config(path)
    v2 = config["v2"]
    before: str = v2.get("active_context") or ""
    if credentials is not None or v2["contexts"].get(CONTEXT, {}).get("pachd_address") != address:
        v2["contexts"][CONTEXT] = {"pachd_address": address, "source": "IMPORTED", **(credentials or {})}
    v2["active_context"] = CONTEXT
    write_config(path, config)
    return "" if before == CONTEXT else before


def _leave_context(server: LocalServer) -> None:
    path = config_path(os.environ)
    config = read_config(path)
    v2 = config["v2"]
    if v2["contexts"].get(CONTEXT, {}).get("pachd_address") != server.address:
        return
    del v2["contexts"][CONTEXT]
    if v2.get("active_context") == CONTEXT:
        # Without an active context pachctl refuses every command, even connect; it starts with an empty one itself.
        before = server.previous_context if server.previous_context in v2["contexts"] else "default"
        v2["contexts"].setdefault(before, {})
        v2["active_context"] = before
    write_config(path, config)
